export type { CurfewApi } from "../engine/curfew-api.ts";
export { type Client, openClient } from "./client.ts";
export type { ClientOptions } from "./client-options.ts";
export type { RemoteJobHandle } from "./remote-job-handle.ts";
export type { RemoteWorker, RemoteWorkerStatus } from "./remote-worker.ts";
export type { Fetch, ServerWarning } from "./transport.ts";
