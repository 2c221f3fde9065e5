export { type CurfewServer, createServer, type ServerOptions } from "./app.ts";
export { createKey, hashKey, type KeyOptions, Keyring, type Visitor } from "./auth.ts";
export type { LimitOptions } from "./body-limits.ts";
export type { DashboardNotice, DashboardOptions } from "./dashboard-files.ts";
export { readKeyFile } from "./key-file.ts";
export { type Listening, type ListenOptions, listen } from "./listen.ts";
export { nodeListener } from "./node-listener.ts";
export type { AuthorizeRequest } from "./request-guard.ts";
export type { Role } from "./roles.ts";
