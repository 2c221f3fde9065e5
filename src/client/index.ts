export type { JobSnapshot } from "../ojs/read-job.ts";
export { type Client, openClient } from "./client.ts";
export type { ClientOptions } from "./client-options.ts";
export type { RemoteJobHandle } from "./remote-job-handle.ts";
export type { RemoteWorker, RemoteWorkerStatus } from "./remote-worker.ts";
export type { Fetch } from "./transport.ts";
