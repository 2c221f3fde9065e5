import { processor } from "curfew";
import { loop } from "./sandbox-job.mjs";

function spin(attempt) {
  while (attempt === 1) Math.sqrt(attempt);
}

export default processor(loop, ({ attempt }) => {
  spin(attempt);
  return attempt;
});
