import { ifMissing, SERVER_PACKAGES } from "../core/load-package.ts";

export { createKey, hashKey, type KeyOptions, Keyring, type Visitor } from "./access/auth.ts";
export { readKeyFile } from "./access/key-file.ts";
export type { AuthorizeRequest } from "./access/request-guard.ts";
export type { Role } from "./access/roles.ts";
export type { CurfewServer, ServerOptions } from "./app.ts";
export type { DashboardNotice, DashboardOptions } from "./dashboard-files.ts";
export type { LimitOptions } from "./http/body-limits.ts";
export type { Listening, ListenOptions } from "./listen.ts";

// Loaded here, so that an error names the packages that the server needs and the command that installs them.
const ask = ifMissing(SERVER_PACKAGES, "curfew/server");
export const { createServer } = await import("./app.ts").catch(ask);
export const { listen } = await import("./listen.ts").catch(ask);
export const { nodeListener } = await import("./http/node-listener.ts").catch(ask);
