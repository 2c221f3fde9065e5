import { ifMissing, SERVER_PACKAGES } from "../core/load-package.ts";

export type { CurfewServer, ServerOptions } from "./app.ts";
export { createKey, hashKey, type KeyOptions, Keyring, type Visitor } from "./auth.ts";
export type { LimitOptions } from "./body-limits.ts";
export type { DashboardNotice, DashboardOptions } from "./dashboard-files.ts";
export { readKeyFile } from "./key-file.ts";
export type { Listening, ListenOptions } from "./listen.ts";
export type { AuthorizeRequest } from "./request-guard.ts";
export type { Role } from "./roles.ts";

// Loaded here, so that an error names the packages that the server needs and the command that installs them.
const ask = ifMissing(SERVER_PACKAGES, "curfew/server");
export const { createServer } = await import("./app.ts").catch(ask);
export const { listen } = await import("./listen.ts").catch(ask);
export const { nodeListener } = await import("./node-listener.ts").catch(ask);
