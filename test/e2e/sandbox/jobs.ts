import { constant, defineJob } from "../../../src/index.ts";

/** What the module does is named by the payload, so that one sandbox serves every test. */
export const act = defineJob({
  type: "sandbox.act",
  timeouts: { attempt: "500ms", grace: "300ms" },
  retry: { attempts: 1, backoff: constant({ first: "10ms", jitter: false }) },
});
