import { randomBytes } from "node:crypto";
import { parseArgs } from "node:util";
import { loadSuite, runSuite } from "./runner.ts";

/** Runs a suite against a server: `node run.ts --url http://127.0.0.1:8080 [--folder ../suites/ext-fences] [--only text] [--concurrency 8]`. */
const { values } = parseArgs({
  options: {
    url: { type: "string", default: "http://127.0.0.1:8080" },
    only: { type: "string", default: "" },
    folder: { type: "string", default: import.meta.dirname },
    concurrency: { type: "string", default: "8" },
  },
});

const all = await loadSuite(values.folder);
const cases = all.filter(({ name, test_id }) => `${test_id} ${name}`.includes(values.only));
const suffix = randomBytes(4).toString("hex");
const results = await runSuite(cases, { url: values.url, suffix, concurrency: Number(values.concurrency) });
const failed = results.filter(({ failures }) => failures.length > 0);
for (const { test_id, name, failures } of failed)
  console.log([`FAIL ${test_id} ${name}`, ...failures].join("\n  "));
console.log(`${results.length - failed.length} passed, ${failed.length} failed`);
process.exitCode = failed.length > 0 || results.length === 0 ? 1 : 0;
