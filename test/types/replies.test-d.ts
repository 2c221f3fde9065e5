import { describe, expectTypeOf, it } from "vitest";
import type { z } from "zod";
import type { Cron } from "../../src/ojs/replies/cron-replies.ts";
import type { History } from "../../src/ojs/replies/history-replies.ts";
import type { Saga } from "../../src/ojs/replies/saga-replies.ts";
import type * as settings from "../../src/ojs/replies/settings-replies.ts";
import type { FiredTimeout, FiredTimeouts } from "../../src/ojs/replies/timeout-replies.ts";
import type * as replies from "../../src/ojs/replies/wire-replies.ts";
import type * as admin from "../../src/server/wire/admin-replies.ts";
import type * as calendars from "../../src/server/wire/calendars.ts";
import type { cronReplySchema } from "../../src/server/wire/cron.ts";
import type { sharesReply } from "../../src/server/wire/fair.ts";
import type * as schemas from "../../src/server/wire/job-schemas.ts";
import type * as wire from "../../src/server/wire/replies.ts";
import type { sagaReply } from "../../src/server/wire/sagas.ts";
import type { tenantReply } from "../../src/server/wire/tenants.ts";
import type { timeoutReply } from "../../src/server/wire/timeouts.ts";
import type * as webhooks from "../../src/server/wire/webhooks.ts";
import type { workflowReplySchema } from "../../src/server/wire/workflow.ts";

/** Schemas of replies allow further fields. These are the ones that they name. */
type Named<Sent> = { [Key in keyof Sent as string extends Key ? never : Key]: Sent[Key] };

/** Fields that the dashboard reads as another type than the schema says. */
type Clashes<Read, Sent> = {
  [Key in keyof Read & keyof Named<Sent>]-?: [NonNullable<Read[Key]> & NonNullable<Sent[Key]>] extends [never]
    ? Key
    : never;
}[keyof Read & keyof Named<Sent>];

/** The same, and fields that the schema does not name. */
type Differs<Read, Sent> = Clashes<Read, Sent> | Exclude<keyof Read, keyof Named<Sent>>;

type Reply<Schema extends z.ZodType> = z.output<Schema>;

describe("what the dashboard reads", () => {
  it("is what the schemas of the replies to operators name", () => {
    expectTypeOf<Differs<replies.Session, Reply<typeof admin.sessionReply>>>().toBeNever();
    expectTypeOf<Differs<replies.Pagination, Reply<typeof admin.pagination>>>().toBeNever();
    expectTypeOf<Clashes<replies.Stats, Reply<typeof admin.statsReply>>>().toBeNever();
    expectTypeOf<Differs<History, Reply<typeof admin.historyReply>>>().toBeNever();
    expectTypeOf<Clashes<replies.Worker, Reply<typeof admin.workerReply>["worker"]>>().toBeNever();
    expectTypeOf<Clashes<replies.Queue, Reply<typeof admin.queueReply>["queue"]>>().toBeNever();
    expectTypeOf<Differs<replies.BulkResult, Reply<typeof admin.bulkReply>>>().toBeNever();
    expectTypeOf<Differs<replies.DeadLetterStats, Reply<typeof admin.deadLetterStatsReply>>>().toBeNever();
    expectTypeOf<Differs<replies.PriorityStats, Reply<typeof admin.priorityStatsReply>>>().toBeNever();
    expectTypeOf<Clashes<replies.Limit, Reply<typeof admin.limitReply>["rate_limit"]>>().toBeNever();
    expectTypeOf<Differs<replies.Maintenance, Reply<typeof admin.maintenanceReply>>>().toBeNever();
    expectTypeOf<Clashes<replies.ServerConfig, Reply<typeof admin.configReply>>>().toBeNever();
  });

  it("is what the schemas of jobs, sagas and workflows name", () => {
    type Fired = Reply<typeof admin.firedTimeoutsReply>;
    expectTypeOf<Clashes<FiredTimeouts, Fired>>().toBeNever();
    expectTypeOf<Differs<FiredTimeout, Fired["items"][number]>>().toBeNever();
    expectTypeOf<Clashes<replies.Job, Reply<typeof wire.jobReplySchema>["job"]>>().toBeNever();
    expectTypeOf<Differs<replies.Logs, Reply<typeof wire.logsReplySchema>>>().toBeNever();
    expectTypeOf<Differs<replies.Events, Reply<typeof wire.eventsReplySchema>>>().toBeNever();
    expectTypeOf<Clashes<Cron, Reply<typeof cronReplySchema>["cron"]>>().toBeNever();
    expectTypeOf<Differs<Saga, Reply<typeof sagaReply>>>().toBeNever();
    expectTypeOf<Differs<replies.Timeout, Reply<typeof timeoutReply>>>().toBeNever();
    expectTypeOf<Clashes<replies.Workflow, Reply<typeof workflowReplySchema>["workflow"]>>().toBeNever();
  });

  it("is what the schemas of settings name", () => {
    expectTypeOf<
      Clashes<settings.Webhook, Reply<typeof webhooks.webhookReply>["subscription"]>
    >().toBeNever();
    expectTypeOf<Clashes<settings.Delivery, Reply<typeof webhooks.deliveryReply>["delivery"]>>().toBeNever();
    expectTypeOf<Differs<settings.WebhookTest, Reply<typeof webhooks.webhookTestReply>>>().toBeNever();
    expectTypeOf<Clashes<settings.SchemaSummary, Reply<typeof schemas.schemaVersionsReply>>>().toBeNever();
    expectTypeOf<Differs<settings.JobSchema, Reply<typeof schemas.schemaReply>>>().toBeNever();
    expectTypeOf<Differs<settings.SchemaCheck, Reply<typeof schemas.schemaCheckReply>>>().toBeNever();
    expectTypeOf<Clashes<settings.Calendar, Reply<typeof calendars.calendarReply>["calendar"]>>().toBeNever();
    expectTypeOf<Clashes<settings.ExplainedTime, Reply<typeof calendars.explainedReply>>>().toBeNever();
    expectTypeOf<Clashes<settings.Tenant, Reply<typeof tenantReply>>>().toBeNever();
    expectTypeOf<Differs<settings.Shares, Reply<typeof sharesReply>>>().toBeNever();
  });
});
