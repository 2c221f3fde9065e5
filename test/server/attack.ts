/**
 * `npm run attack`: requests and streams that try to keep a server busy or to fill its memory. Prints what each did, and
 * fails if a request of up to 1 MB blocks the event loop for more than 50 ms, or if the server takes more than 512 MB.
 * The default store is a new SQLite file; `--store memory:` attacks another one. `--scale 1` is a shorter run.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { FLOODS, runFlood } from "./attack/floods.ts";
import { sendEach } from "./attack/run.ts";

const LONGEST_BLOCK = 50;
const MOST_MEMORY = 512_000_000;

const { values } = parseArgs({
  options: { store: { type: "string" }, scale: { type: "string", default: "3" } },
});
const folder = await mkdtemp(join(tmpdir(), "curfew-attack-"));
let stores = 0;
const newStore = () => values.store ?? `sqlite:${join(folder, `${++stores}.db`)}`;
let failures = 0;

function report(isOver: boolean, line: string): void {
  if (isOver) failures += 1;
  console.log(`${isOver ? "OVER" : "ok  "} ${line}`);
}

for (const { name, status, size, longest } of await sendEach(newStore(), 3))
  report(
    longest > LONGEST_BLOCK || status >= 500,
    `${longest.toFixed(1).padStart(6)} ms  ${status}  ${(size / 1e6).toFixed(2)} MB  ${name}`,
  );
for (const flood of FLOODS) {
  const { name, said, peak } = await runFlood(flood, newStore(), Number(values.scale));
  report(peak > MOST_MEMORY, `${(peak / 1e6).toFixed(0).padStart(6)} MB  ${name}: ${said}`);
}
await rm(folder, { recursive: true });
console.log(`${failures} failures`);
process.exit(failures === 0 ? 0 : 1);
