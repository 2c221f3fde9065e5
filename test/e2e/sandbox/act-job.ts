// Not from the index: a sandbox of the tests is started hundreds of times, and most of its start is what it imports.
import { defineJob } from "../../../src/core/job/job-definition.ts";
import { constant } from "../../../src/core/job/policy/retry.ts";

/** What the module does is named by the payload, so that one sandbox serves every test. */
export const act = defineJob({
  type: "sandbox.act",
  timeouts: { attempt: "500ms", grace: "300ms" },
  retry: { attempts: 1, backoff: constant({ first: "10ms", jitter: false }) },
});
