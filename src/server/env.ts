import type { HttpBindings } from "@hono/node-server";

/** Hono's context. Only Node sets the bindings. */
export interface ServerEnv {
  Bindings: Partial<HttpBindings>;
}
