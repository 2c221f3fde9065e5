import type { Route } from "../route.ts";
import { adminDeadLetterRoutes } from "./admin-dead-letters.ts";
import { adminDoctorRoutes } from "./admin-doctor.ts";
import { adminJobRoutes, bulkRoutes } from "./admin-jobs.ts";
import { adminPurgePreviewRoutes } from "./admin-purge-preview.ts";
import { adminQueueRoutes } from "./admin-queues.ts";
import { adminSagaRoutes } from "./admin-sagas.ts";
import { adminStatsRoutes } from "./admin-stats.ts";
import { adminSystemRoutes } from "./admin-system.ts";
import { adminTenantRoutes } from "./admin-tenants.ts";
import { adminTimeoutRoutes } from "./admin-timeouts.ts";
import { adminTransferRoutes } from "./admin-transfer.ts";
import { adminWorkerRoutes } from "./admin-workers.ts";
import { calendarRoutes } from "./calendars.ts";
import { callRoutes } from "./calls.ts";
import { cronRoutes } from "./crons.ts";
import { deadLetterRoutes } from "./dead-letter.ts";
import { eventStreamRoutes } from "./event-stream.ts";
import { eventRoutes } from "./events.ts";
import { firedTimeoutRoutes } from "./fired-timeouts.ts";
import { jobSchemaRoutes } from "./job-schemas.ts";
import { jobRoutes } from "./jobs.ts";
import { noteRoutes } from "./notes.ts";
import { poolRoutes } from "./pools.ts";
import { progressStreamRoutes } from "./progress-stream.ts";
import { queueRoutes } from "./queues.ts";
import { rateLimitRoutes } from "./rate-limits.ts";
import { reportBatchRoutes } from "./report-batches.ts";
import { schedulingRoutes } from "./scheduling.ts";
import { sessionRoutes } from "./session.ts";
import { statsStreamRoutes } from "./stats-stream.ts";
import { systemRoutes } from "./system.ts";
import { uniqueJobRoutes } from "./unique-jobs.ts";
import { webhookRoutes } from "./webhooks.ts";
import { whyRoutes } from "./why.ts";
import { workerRoutes } from "./workers.ts";
import { workflowRoutes } from "./workflows.ts";

/** Routes whose replies are endless streams. */
export const STREAM_ROUTES: readonly Route[] = [
  ...eventStreamRoutes,
  ...progressStreamRoutes,
  ...statsStreamRoutes,
];

/** Every endpoint of the server. The OpenAPI document describes all of them. */
export const ROUTES: readonly Route[] = [
  ...systemRoutes,
  ...sessionRoutes,
  ...bulkRoutes,
  ...jobRoutes,
  ...workerRoutes,
  ...reportBatchRoutes,
  ...noteRoutes,
  ...deadLetterRoutes,
  ...cronRoutes,
  ...calendarRoutes,
  ...workflowRoutes,
  ...eventRoutes,
  ...adminStatsRoutes,
  ...adminJobRoutes,
  ...adminDeadLetterRoutes,
  ...adminWorkerRoutes,
  ...adminTimeoutRoutes,
  ...firedTimeoutRoutes,
  ...adminSagaRoutes,
  ...adminDoctorRoutes,
  ...adminPurgePreviewRoutes,
  ...queueRoutes,
  ...adminQueueRoutes,
  ...schedulingRoutes,
  ...poolRoutes,
  ...rateLimitRoutes,
  ...webhookRoutes,
  ...uniqueJobRoutes,
  ...jobSchemaRoutes,
  ...adminSystemRoutes,
  ...adminTenantRoutes,
  ...adminTransferRoutes,
  ...whyRoutes,
  ...callRoutes,
  ...STREAM_ROUTES,
];
