/**
 * `npm run attack`: requests and streams that try to keep a server busy or to fill its memory. Prints what each did, and
 * fails if a request of up to 1 MB blocks the event loop for more than 50 ms. `--store sqlite:path` attacks another store.
 */
import { parseArgs } from "node:util";
import { sendEach } from "./attack/run.ts";

const LONGEST_BLOCK = 50;

const { values } = parseArgs({ options: { store: { type: "string", default: "memory:" } } });
let failures = 0;

for (const { name, status, size, longest } of await sendEach(values.store, 3)) {
  const isOver = longest > LONGEST_BLOCK;
  if (isOver) failures += 1;
  const cost = `${longest.toFixed(1).padStart(6)} ms`;
  console.log(`${isOver ? "OVER" : "ok  "} ${cost}  ${status}  ${(size / 1e6).toFixed(2)} MB  ${name}`);
}
console.log(`${failures} failures`);
process.exit(failures === 0 ? 0 : 1);
