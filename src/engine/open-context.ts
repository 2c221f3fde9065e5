import { createHomedIdSource, createIdSource } from "../core/ids.ts";
import { parseSettings } from "../core/job/policy/policy.ts";
import { DOCUMENT_LIMIT } from "../core/schema.ts";
import { parseDuration } from "../core/time.ts";
import { guardedLogger } from "../ports/log.ts";
import type { Unit } from "../ports/store.ts";
import { CalendarCache } from "./calendars/calendar-cache.ts";
import { commitUnits } from "./commit/commit.ts";
import { Committer } from "./commit/committer.ts";
import type { EngineContext } from "./context.ts";
import { checkDocumentLimit, type EngineOptions } from "./engine-options.ts";
import { EventBus } from "./events/event-bus.ts";
import { EventRecorder } from "./events/event-recorder.ts";
import { QueueSettings } from "./queues/queue-settings-cache.ts";
import { openSealing } from "./runtime/aes-sealing.ts";
import { EngineClock } from "./runtime/engine-clock.ts";
import { guardedTracing } from "./runtime/guarded-tracing.ts";
import { Pauses } from "./runtime/pauses.ts";
import { Waiters } from "./runtime/waiters.ts";
import { SchemaCache } from "./schemas/schema-cache.ts";
import { Counters } from "./statistics/counters.ts";
import { LearnedLimits } from "./statistics/learned-limits.ts";

/** The context without the functions that only the engine itself can provide. */
export type SharedContext = Omit<
  EngineContext,
  "assertOpen" | "enqueueFrom" | "wakeSweepAt" | "changed" | "ready"
>;

/** What the engine of a tenant does not share with the engine that opened it. */
type OwnParts = Pick<
  SharedContext,
  | "store"
  | "bus"
  | "queues"
  | "schemas"
  | "learned"
  | "calendars"
  | "counters"
  | "waiters"
  | "committer"
  | "recorder"
  | "storeFailed"
>;

/** Reads the settings of a store, and opens what one engine has over it. */
export async function openOwnParts(
  { system, clock }: Pick<SharedContext, "system" | "clock">,
  { store, bus, queues, storeFailed }: Pick<OwnParts, "store" | "bus" | "queues" | "storeFailed">,
): Promise<OwnParts> {
  const schemas = new SchemaCache(store);
  const calendars = new CalendarCache(store);
  const learned = new LearnedLimits(store);
  await Promise.all([queues.refresh(), calendars.refresh(), schemas.refresh(), learned.refresh()]);
  const commit = (units: readonly Unit[]) => commitUnits({ store, clock }, units);
  return {
    store,
    bus,
    queues,
    schemas,
    learned,
    calendars,
    counters: new Counters(),
    waiters: new Waiters(),
    committer: new Committer(commit),
    recorder: new EventRecorder({ commit, system, storeFailed }),
    storeFailed,
  };
}

/** Checks the options, and reads the store's clock and queue settings. */
export async function openSharedContext(options: EngineOptions): Promise<SharedContext> {
  const { store, system } = options;
  const logger = guardedLogger(options.logger);
  const settings = parseSettings(options, "");
  const documentLimit = checkDocumentLimit(options.documentLimit ?? DOCUMENT_LIMIT);
  const eventsKept = parseDuration(options.keepEvents ?? "1d", "keepEvents");
  const auditKept = parseDuration(options.keepAudit ?? "90d", "keepAudit");
  const clock = await EngineClock.open(system, store, options.role === "producer" ? "when-used" : "always");
  const bus = new EventBus(logger);
  const storeFailed = (error: unknown, during: string) => {
    logger.error({ error, during }, "the store failed");
    bus.emit({ name: "store.error", at: clock.now(), during, error });
  };
  const queues = new QueueSettings(store, undefined, options.roundLimits);
  const own = await openOwnParts({ system, clock }, { store, bus, queues, storeFailed });
  const { durable, name } = store.capabilities;
  if (durable === "none")
    logger.warn({ store: name }, "this store is not durable: all jobs are lost when the process ends");
  const createIds = store.capabilities.homes === 1 ? createIdSource : createHomedIdSource;
  return {
    ...own,
    system,
    clock,
    logger,
    settings,
    tenant: null,
    pauses: new Pauses(system),
    tracing: options.tracing && guardedTracing(options.tracing, logger),
    random: system.random,
    nextId: createIds(() => clock.now(), system.fill),
    host: options.host ?? null,
    documentLimit,
    ...(options.encryption && { sealing: openSealing(options.encryption, system, documentLimit) }),
    eventsKept,
    auditKept,
    idlePollFactor: options.idlePollFactor ?? 1,
    ...(options.secondCommitFrom !== undefined && { secondCommitFrom: options.secondCommitFrom }),
    isWatched: true,
  };
}
