import type { Route } from "../route.ts";
import { adminDeadLetterRoutes } from "./admin-dead-letters.ts";
import { adminJobRoutes } from "./admin-jobs.ts";
import { adminQueueRoutes } from "./admin-queues.ts";
import { adminStatsRoutes } from "./admin-stats.ts";
import { adminWorkerRoutes } from "./admin-workers.ts";
import { cronRoutes } from "./crons.ts";
import { deadLetterRoutes } from "./dead-letter.ts";
import { eventStreamRoutes } from "./event-stream.ts";
import { eventRoutes } from "./events.ts";
import { jobRoutes } from "./jobs.ts";
import { noteRoutes } from "./notes.ts";
import { queueRoutes } from "./queues.ts";
import { rateLimitRoutes } from "./rate-limits.ts";
import { systemRoutes } from "./system.ts";
import { workerRoutes } from "./workers.ts";
import { workflowRoutes } from "./workflows.ts";

/** Every endpoint of the server: what is served, and what the OpenAPI document describes. */
export const ROUTES: readonly Route[] = [
  ...systemRoutes,
  ...jobRoutes,
  ...workerRoutes,
  ...noteRoutes,
  ...deadLetterRoutes,
  ...cronRoutes,
  ...workflowRoutes,
  ...eventRoutes,
  ...adminStatsRoutes,
  ...adminJobRoutes,
  ...adminDeadLetterRoutes,
  ...adminWorkerRoutes,
  ...queueRoutes,
  ...adminQueueRoutes,
  ...rateLimitRoutes,
  ...eventStreamRoutes,
];
