import { unchecked } from "../../../src/core/job/job-definition.ts";
import { defineJob } from "../../../src/index.ts";

/** Quick jobs that are not kept: `double` has a declared result, `plain` has none. */
export const double = defineJob({
  type: "results.double",
  payload: unchecked<number>(),
  result: unchecked<number>(),
  retention: "0s",
});

export const plain = defineJob({
  type: "results.plain",
  payload: unchecked<number>(),
  retention: "0s",
});
