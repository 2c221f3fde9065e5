import type { JobRow } from "../../core/job/job.ts";
import { namesOf } from "../../core/tenant/tenant-name.ts";
import type {
  ClaimRequest,
  Enqueued,
  EventPage,
  Inspector,
  JobStore,
  Line,
  RecordStore,
  Scan,
  Store,
  Unit,
} from "../../ports/store.ts";
import type { TimeoutStore } from "../../ports/timeouts.ts";
import type { TenantLimiter } from "./tenant-limiter.ts";
import type { TenantScope } from "./tenant-scope.ts";

/**
 * The store as one tenant sees it: an engine above it can neither read nor write anything else. The loops that act for
 * all tenants (sweep, prune) stay with the engine that was opened first.
 */
export function scopedStore(store: Store, scope: TenantScope, limiter: TenantLimiter): Store {
  return {
    capabilities: store.capabilities,
    jobs: scopedJobs(store.jobs, scope, limiter),
    records: scopedRecords(store.records, scope),
    timeouts: scopedTimeouts(store.timeouts, scope),
    inspect: scopedInspector(store.inspect, scope),
    clock: () => store.clock(),
    async look({ queues, destinations, records }) {
      const looked = await store.look({
        queues: queues.map((name) => scope.name(name)),
        destinations: destinations.map((name) => scope.name(name)),
        records: records.map((key) => scope.recordKey(key)),
      });
      // The engine of all tenants sweeps.
      return { ...looked, ready: looked.ready.map((name) => scope.unname(name)), nextWakeAt: null };
    },
    commit: (units, options) =>
      store.commit(
        units.map((unit) => scopedUnit(unit, scope)),
        options,
      ),
    listen: (onHint) =>
      store.listen((hint) => {
        const own = scope.hint(hint);
        if (own) onHint(own);
      }),
    // The store belongs to the engine of all tenants.
    close: async () => {},
  };
}

function scopedUnit({ job, when, effects }: Unit, scope: TenantScope): Unit {
  return {
    ...(job && { job: { ...job, id: scope.id(job.id) } }),
    ...(when && { when: when.map((guard) => scope.guard(guard)) }),
    ...(effects && { effects: effects.map((effect) => scope.effect(effect)) }),
  };
}

/** A row of another tenant does not exist here. */
function ownRow(row: JobRow | null, scope: TenantScope): JobRow | null {
  return row && scope.owns(row.queue) ? scope.row(row) : null;
}

function scopedJobs(jobs: JobStore, scope: TenantScope, limiter: TenantLimiter): JobStore {
  const enqueued = (answer: Enqueued): Enqueued =>
    typeof answer === "object" ? { duplicate: scope.id(answer.duplicate) } : answer;
  const claim = async (request: ClaimRequest) => {
    const [queue, worker] = [scope.name(request.queue), scope.name(request.worker)];
    const rows = await limiter.claim(request.limit, (limit) =>
      jobs.claim({ ...request, limit, queue, worker }),
    );
    return rows.map((row) => scope.row(row));
  };
  return {
    async enqueue(newJobs, { bounds, onDepth, ...options }) {
      const answers = await jobs.enqueue(
        newJobs.map((job) => scope.newJob(job)),
        {
          ...options,
          ...(bounds && { bounds: new Map([...bounds].map(([queue, most]) => [scope.name(queue), most])) }),
          ...(onDepth && { onDepth: (queue, waiting) => onDepth(scope.unname(queue), waiting) }),
        },
      );
      return answers.map(enqueued);
    },
    claim,
    beat: (request) =>
      jobs.beat({
        ...request,
        worker: { ...request.worker, id: scope.name(request.worker.id) },
        jobs: request.jobs.map((beat) => ({
          ...beat,
          id: scope.id(beat.id),
          ...(beat.records && { records: scope.event(beat.records) }),
        })),
      }),
    // The engine of all tenants sweeps and prunes, and hands out what is due.
    sweep: async () => ({ ready: new Map(), jobs: [], records: [], nextWakeAt: null }),
    prune: async () => 0,
    async load(ids, options) {
      const rows = await jobs.load(
        ids.map((id) => scope.id(id)),
        options,
      );
      return rows.map((row) => ownRow(row, scope));
    },
  };
}

function scopedRecords(records: RecordStore, scope: TenantScope): RecordStore {
  return {
    async load(keys) {
      const rows = await records.load(keys.map((key) => scope.recordKey(key)));
      return rows.map((row) => row && scope.record(row));
    },
    async list(kind, after, limit, order) {
      const [stored, named] = scope.recordKey([kind, after ?? ""]);
      // A list that goes down begins at the last name of the tenant.
      const last = named === "" ? null : namesOf(scope.tenant).to;
      const from = order === "desc" && after === null ? last : named;
      // Where the kind names the tenant, the keys are as the tenant wrote them.
      const rows = await records.list(stored, stored === kind ? from : after, limit, order);
      return rows
        .filter(({ key }) => stored !== kind || key[1].startsWith(scope.recordKey([kind, ""])[1]))
        .map((row) => scope.record(row));
    },
  };
}

function scopedTimeouts(timeouts: TimeoutStore, scope: TenantScope): TimeoutStore {
  const named = <Item extends { readonly id: string }>(items: readonly Item[]): Item[] =>
    items.map((item) => ({ ...item, id: scope.name(item.id) }));
  const { tenant } = scope;
  return {
    leases: timeouts.leases,
    insert: (rows, options) =>
      timeouts.insert(
        rows.map((row) => scope.newTimeout(row)),
        options,
      ),
    async claimDue(request) {
      const { destinations } = request;
      if (!destinations) return claimOwn(timeouts, scope, request);
      const rows = await timeouts.claimDue({
        ...request,
        destinations: destinations.map((one) => ({ ...one, name: scope.name(one.name) })),
      });
      return rows.map((row) => scope.timeout(row));
    },
    remove: (leased, options) => timeouts.remove(named(leased), options),
    release: (released, options) => timeouts.release(named(released), options),
    extend: (extended, options) => timeouts.extend(named(extended), options),
    reap: (request) => timeouts.reap(request),
    cancel: (which, options) => timeouts.cancel(scope.which(which), options),
    requeue: (ids, options) =>
      timeouts.requeue(
        ids.map((id) => scope.name(id)),
        options,
      ),
    reschedule: (moves, options) => timeouts.reschedule(named(moves), options),
    async load(ids) {
      const rows = await timeouts.load(ids.map((id) => scope.name(id)));
      return rows.map((row) => row && scope.timeout(row));
    },
    async calendar(request) {
      const { destination, after } = request;
      const rows = await timeouts.calendar({
        ...request,
        tenant,
        after: after && { ...after, id: scope.name(after.id) },
        ...(destination !== undefined && { destination: scope.destination(destination) }),
      });
      return rows.map((row) => scope.timeout(row));
    },
    async list(filter, after, limit) {
      const { destination, saga } = filter;
      const own = {
        ...filter,
        tenant,
        ...(destination !== undefined && { destination: scope.destination(destination) }),
        ...(saga && { saga: scope.recordKey(saga) }),
      };
      const rows = await timeouts.list(own, after === null ? null : scope.name(after), limit);
      return rows.map((row) => scope.timeout(row));
    },
    nextDueAt: (destinations) => nextOwnDueAt(timeouts, scope, destinations),
    count: (request) => timeouts.count({ ...request, tenant }),
  };
}

/** Many timeouts of a tenant are looked through for their destinations; each is claimed by its name. */
const MOST_LOOKED_AT = 1_000;

async function ownDestinations(timeouts: TimeoutStore, scope: TenantScope): Promise<string[]> {
  const range = { from: 0, before: Number.MAX_SAFE_INTEGER, after: null, limit: MOST_LOOKED_AT };
  const rows = await timeouts.calendar({ ...range, tenant: scope.tenant });
  return [...new Set(rows.map(({ destination }) => destination).filter((name) => scope.owns(name)))];
}

/** A claim for all destinations, as `curfew/timeouts` makes it, must not take what belongs to others. */
async function claimOwn(
  timeouts: TimeoutStore,
  scope: TenantScope,
  request: Parameters<TimeoutStore["claimDue"]>[0],
) {
  const names = await ownDestinations(timeouts, scope);
  if (names.length === 0) return [];
  const limit = request.limit ?? MOST_LOOKED_AT;
  const rows = await timeouts.claimDue({ ...request, destinations: names.map((name) => ({ name, limit })) });
  return rows.map((row) => scope.timeout(row));
}

async function nextOwnDueAt(
  timeouts: TimeoutStore,
  scope: TenantScope,
  destinations: readonly string[] | undefined,
) {
  if (destinations) return timeouts.nextDueAt(destinations.map((name) => scope.name(name)));
  const names = await ownDestinations(timeouts, scope);
  return names.length === 0 ? null : timeouts.nextDueAt(names);
}

function scopedInspector(inspect: Inspector, scope: TenantScope): Inspector {
  const { tenant, prefix } = scope;
  const from = (after: string | null) => (after === null ? prefix : scope.name(after));
  return {
    ...scopedScans(inspect, scope),
    ...scopedLines(inspect, scope),
    ...scopedEvents(inspect, scope),
    async depths(queue) {
      const depths = await inspect.depths(queue === undefined ? undefined : scope.name(queue), tenant);
      return new Map([...depths].map(([name, depth]) => [scope.unname(name), depth]));
    },
    async holders(after, limit) {
      const holders = await inspect.holders(from(after), limit);
      const own = holders.filter(({ key }) => scope.owns(key));
      return own.map(({ key, job }) => ({ key: scope.unname(key), job: scope.id(job) }));
    },
    async uniqueKeys(ids) {
      const keys = await inspect.uniqueKeys(ids.map((id) => scope.id(id)));
      return keys.map((key) => (key !== null && scope.owns(key) ? scope.unname(key) : null));
    },
    async limitKeys(after, limit) {
      const rows = await inspect.limitKeys(from(after), limit);
      return rows.filter(({ key }) => scope.owns(key)).map((row) => ({ ...row, key: scope.unname(row.key) }));
    },
    async limitKey(limitKey) {
      return { ...(await inspect.limitKey(scope.name(limitKey))), key: limitKey };
    },
    async limitJobs(limitKey, state, limit) {
      const rows = await inspect.limitJobs(scope.name(limitKey), state, limit);
      return rows.map((row) => scope.row(row));
    },
    async live() {
      const counts = await inspect.live(tenant);
      return counts.map((count) => ({ ...count, queue: scope.unname(count.queue) }));
    },
    shares: (queue, limit, most) => inspect.shares(scope.name(queue), limit, most),
    used: (_tenant, most) => inspect.used(tenant, most),
    logLines: (id, after, limit) => inspect.logLines(scope.id(id), after, limit),
  };
}

function scopedScans(inspect: Inspector, scope: TenantScope): Pick<Inspector, "page" | "count"> {
  const { tenant } = scope;
  const scan = ({ filter, after, newestFirst, isBrief }: Scan): Scan => ({
    filter: {
      ...filter,
      tenant,
      ...(filter.queue !== undefined && { queue: scope.name(filter.queue) }),
    },
    after: after === null ? null : scope.cursor(after),
    ...(newestFirst !== undefined && { newestFirst }),
    ...(isBrief !== undefined && { isBrief }),
  });
  const onward = (cursor: string | null) => (cursor === null ? null : scope.cursor(cursor));
  return {
    async page(asked, limit) {
      const { jobs, cursor } = await inspect.page(scan(asked), limit);
      return { jobs: jobs.map((row) => scope.row(row)), cursor: onward(cursor) };
    },
    async count(asked) {
      const { count, cursor } = await inspect.count(scan(asked));
      return { count, cursor: onward(cursor) };
    },
  };
}

function scopedLines(
  inspect: Inspector,
  scope: TenantScope,
): Pick<Inspector, "ahead" | "slots" | "readyQueues" | "oldestReady"> {
  const { tenant, prefix } = scope;
  const line = (one: Line): Line =>
    "queue" in one ? { queue: scope.name(one.queue) } : { limitKey: scope.name(one.limitKey) };
  return {
    ahead: (one, before, most) => {
      const own = "fairKey" in one ? { ...one, queue: scope.name(one.queue) } : line(one);
      return inspect.ahead(own, { ...before, id: scope.id(before.id) }, most);
    },
    async slots(one, most) {
      const { jobs, ...use } = await inspect.slots(line(one), most);
      return { ...use, jobs: jobs.map((row) => scope.row(row)) };
    },
    async readyQueues(after, limit) {
      const names = await inspect.readyQueues(after === null ? prefix : scope.name(after), limit);
      return names.filter((name) => scope.owns(name)).map((name) => scope.unname(name));
    },
    async oldestReady(limit) {
      const jobs = await inspect.oldestReady(limit, tenant);
      return jobs.map((job) => ({ ...job, id: scope.id(job.id), queue: scope.unname(job.queue) }));
    },
  };
}

/** The journal leaves out events of others. Their cursors stay, so that it can go on after them. */
function scopedEvents(
  inspect: Inspector,
  { eventCursors }: TenantScope,
): Pick<Inspector, "events" | "latestEvents"> {
  const hidden = (page: EventPage): EventPage => ({
    ...page,
    cursors: page.cursors.map((cursor) => eventCursors.hide(cursor)),
    cursor: page.cursor === null ? null : eventCursors.hide(page.cursor),
  });
  return {
    events: async (after, limit) =>
      hidden(await inspect.events(after === null ? null : eventCursors.show(after), limit)),
    latestEvents: async (limit, before) =>
      hidden(await inspect.latestEvents(limit, before === undefined ? before : eventCursors.show(before))),
  };
}
