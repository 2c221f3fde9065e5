/** What `curfew serve --workers` and `curfew work` run: replace it with your own processors. */
import { defineJob, processor } from "curfew";

export const hello = defineJob({ type: "hello", timeouts: { attempt: "30s" } });

export default [processor(hello, ({ id, log }) => log(`hello from ${id}`))];
