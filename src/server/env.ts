import type { HttpBindings } from "@hono/node-server";

/** What Hono's context holds here. The bindings are there under Node and missing in other hosts. */
export interface ServerEnv {
  Bindings: Partial<HttpBindings>;
}
