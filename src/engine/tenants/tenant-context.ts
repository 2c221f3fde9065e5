import { idsOfTenant } from "../../core/ids.ts";
import type { TenantLimits } from "../../core/tenant/tenant-limits.ts";
import type { Unit } from "../../ports/store.ts";
import { CalendarCache } from "../calendars/calendar-cache.ts";
import { commitUnits } from "../commit/commit.ts";
import { Committer } from "../commit/committer.ts";
import type { EngineContext } from "../context.ts";
import { EventBus } from "../events/event-bus.ts";
import { EventRecorder } from "../events/event-recorder.ts";
import type { SharedContext } from "../open-context.ts";
import { QueueSettings } from "../queues/queue-settings-cache.ts";
import { Waiters } from "../runtime/waiters.ts";
import { SchemaCache } from "../schemas/schema-cache.ts";
import { Counters } from "../statistics/counters.ts";
import { LearnedLimits } from "../statistics/learned-limits.ts";
import { scopedStore } from "./scoped-store.ts";
import { TenantUse } from "./tenant-gate.ts";
import type { TenantScope } from "./tenant-scope.ts";

/** The context of an engine within a tenant: the same system and clock, everything else its own. */
export async function tenantContext(
  all: EngineContext,
  scope: TenantScope,
  limits: () => TenantLimits,
): Promise<SharedContext> {
  const { system, clock, logger } = all;
  const { tenant } = scope;
  const gate = new TenantUse({ tenant, inspect: all.store.inspect, limits, now: () => clock.now() });
  const store = scopedStore(all.store, scope, gate);
  const bus = new EventBus(logger);
  const queues = new QueueSettings(store, all.queues);
  const calendars = new CalendarCache(store);
  const schemas = new SchemaCache(store);
  const learned = new LearnedLimits(store);
  await Promise.all([queues.refresh(), calendars.refresh(), schemas.refresh(), learned.refresh()]);
  const commit = (units: readonly Unit[]) => commitUnits({ store, clock }, units);
  const storeFailed = (error: unknown, during: string) => all.storeFailed(error, `${during} of ${tenant}`);
  return {
    system,
    store,
    clock,
    logger,
    bus,
    queues,
    calendars,
    schemas,
    learned,
    settings: all.settings,
    tenant,
    admit: (jobs) => gate.enqueue(jobs),
    counters: new Counters(),
    waiters: new Waiters(),
    committer: new Committer(commit),
    tracing: all.tracing,
    random: all.random,
    nextId: idsOfTenant(all.nextId, scope.prefix),
    host: all.host,
    documentLimit: all.documentLimit,
    eventsKept: all.eventsKept,
    auditKept: all.auditKept,
    idlePollFactor: all.idlePollFactor,
    isWatched: true,
    recorder: new EventRecorder({ commit, system, storeFailed }),
    storeFailed,
  };
}
