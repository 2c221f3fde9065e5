import type { NewEvent } from "../../core/event/new-event.ts";
import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import type { Json } from "../../core/schema.ts";
import { TENANT_MARK, tenantOf, tenantPrefix } from "../../core/tenant/tenant-name.ts";
import type { NewTimeout, TimeoutRow } from "../../core/timeout/timeout.ts";
import {
  type Effect,
  type Guard,
  type Hint,
  limitRecordKey,
  pauseKey,
  type RecordKey,
  type RecordRow,
  START_KIND,
} from "../../ports/store.ts";
import type { Which } from "../../ports/timeouts.ts";
import { sha256 } from "../runtime/sha256.ts";
import { EventCursors } from "./event-cursors.ts";

/** Kinds of records that stores read or write by the stored name of a queue, a limit or a worker. */
const NAMED_KINDS: ReadonlySet<string> = new Set([pauseKey("")[0], limitRecordKey("")[0], "worker"]);
/** One for all tenants: whether events are recorded. */
const SHARED_KINDS: ReadonlySet<string> = new Set(["setting"]);
/** Every engine serves this destination, for jobs of all tenants. The id of a timeout names its tenant. */
const SHARED_DESTINATIONS: ReadonlySet<string> = new Set(["job"]);

const TAIL = 24;
const HALF = 6;
const UUID_LENGTH = 36;

/**
 * The one place that turns names of a tenant into stored names and back. Names get a prefix that no caller can write.
 * Job ids stay UUIDs: their last 48 bits are masked with a secret of the store, so an id that two tenants give is two jobs,
 * and nobody can compute which id would meet a job of another tenant. Documents are stored as the tenant wrote them: only
 * code within the scope reads them.
 */
export class TenantScope {
  readonly tenant: string;
  readonly prefix: string;
  readonly eventCursors: EventCursors;
  readonly #high: number;
  readonly #low: number;
  /** Recorded events share objects, and a store writes a shared object once. So each gets one copy. */
  readonly #tagged = new WeakMap<object, Json>();

  constructor(tenant: string, secret: string) {
    this.tenant = tenant;
    this.prefix = tenantPrefix(tenant);
    const mask = sha256(`${secret} ${tenant}`);
    this.eventCursors = new EventCursors(sha256(`${secret} events ${tenant}`));
    this.#high = Number.parseInt(mask.slice(0, HALF), 16);
    this.#low = Number.parseInt(mask.slice(HALF, 2 * HALF), 16);
  }

  /** A stored name from a name of the tenant. */
  name(name: string): string {
    return this.prefix + name;
  }

  /** A name of the tenant from a stored name. */
  unname(stored: string): string {
    return stored.slice(this.prefix.length);
  }

  owns(stored: string): boolean {
    return stored.startsWith(this.prefix);
  }

  /** Turns an id of the tenant into the stored one, and a stored one into that of the tenant. Other texts stay. */
  id(id: JobId): JobId {
    if (id.length !== UUID_LENGTH) return id;
    const high = Number.parseInt(id.slice(TAIL, TAIL + HALF), 16) ^ this.#high;
    const low = Number.parseInt(id.slice(TAIL + HALF), 16) ^ this.#low;
    return id.slice(0, TAIL) + hex(high) + hex(low);
  }

  /** The cursor of a scan: an id, or an instant, a dot and an id. */
  cursor(cursor: string): string {
    const at = cursor.length - UUID_LENGTH;
    return at < 0 ? cursor : cursor.slice(0, at) + this.id(cursor.slice(at));
  }

  recordKey([kind, key]: RecordKey): RecordKey {
    if (SHARED_KINDS.has(kind)) return [kind, key];
    return NAMED_KINDS.has(kind) ? [kind, this.name(key)] : [`${kind}${TENANT_MARK}${this.tenant}`, key];
  }

  record(row: RecordRow): RecordRow {
    const [kind, key] = row.key;
    if (SHARED_KINDS.has(kind)) return row;
    if (NAMED_KINDS.has(kind)) return { ...row, key: [kind, this.unname(key)] };
    return { ...row, key: [kind.slice(0, kind.indexOf(TENANT_MARK)), key] };
  }

  /** A job as it is stored. */
  newJob(job: NewJob): NewJob {
    return {
      ...job,
      id: this.id(job.id),
      queue: this.name(job.queue),
      ...(job.workflow !== undefined && { workflow: this.name(job.workflow) }),
      ...(job.limitKey !== undefined && { limitKey: this.name(job.limitKey) }),
      ...(job.uniqueKey !== undefined && { uniqueKey: this.name(job.uniqueKey) }),
      ...(job.records && { records: this.event(job.records) }),
    };
  }

  /** A stored row as the tenant sees it. */
  row(row: JobRow): JobRow {
    return {
      ...row,
      id: this.id(row.id),
      queue: this.unname(row.queue),
      worker: row.worker === null ? null : this.unname(row.worker),
      workflow: row.workflow === null ? null : this.unname(row.workflow),
      limitKey: row.limitKey === null ? null : this.unname(row.limitKey),
    };
  }

  /** The event with the tenant's name, by which readers find it. */
  event({ event, of }: NewEvent): NewEvent {
    const tagged = this.#tag(event);
    return of === undefined ? { event: tagged } : { event: tagged, of };
  }

  #tag(event: Json): Json {
    if (typeof event !== "object" || event === null || Array.isArray(event)) return event;
    const known = this.#tagged.get(event);
    if (known !== undefined) return known;
    const tagged: Json = { ...event, tenant: this.tenant };
    this.#tagged.set(event, tagged);
    return tagged;
  }

  destination(name: string): string {
    return SHARED_DESTINATIONS.has(name) ? name : this.name(name);
  }

  newTimeout(timeout: NewTimeout): NewTimeout {
    const { id, destination, key, saga } = timeout;
    return {
      ...timeout,
      id: this.name(id),
      destination: this.destination(destination),
      // A shared destination is one scope of keys for all tenants.
      ...(key !== undefined && !saga && { key: this.#timeoutKey(destination, key) }),
      ...(saga && { saga: this.recordKey(saga) }),
    };
  }

  timeout(row: TimeoutRow): TimeoutRow {
    const isShared = SHARED_DESTINATIONS.has(row.destination);
    return {
      ...row,
      id: this.unname(row.id),
      destination: isShared ? row.destination : this.unname(row.destination),
      key: row.key !== null && row.saga === null && isShared ? this.unname(row.key) : row.key,
      saga: row.saga && this.record({ key: row.saga, version: 0, wakeAt: null, body: null }).key,
    };
  }

  #timeoutKey(destination: string, key: string): string {
    return SHARED_DESTINATIONS.has(destination) ? this.name(key) : key;
  }

  which(which: Which): Which {
    if ("id" in which) return { id: this.name(which.id) };
    if ("saga" in which) return { ...which, saga: this.recordKey(which.saga) };
    const { destination, key } = which;
    return { destination: this.destination(destination), key: this.#timeoutKey(destination, key) };
  }

  guard(guard: Guard): Guard {
    if ("record" in guard) return { ...guard, record: this.recordKey(guard.record) };
    if ("timeout" in guard) return { ...guard, timeout: this.name(guard.timeout) };
    return { ...guard, idle: this.name(guard.idle) };
  }

  effect(effect: Effect): Effect {
    if ("event" in effect) return this.event(effect);
    if ("put" in effect) return { ...effect, put: this.recordKey(effect.put) };
    if ("enqueue" in effect) return { enqueue: this.newJob(effect.enqueue) };
    if ("countdown" in effect) return { countdown: this.id(effect.countdown) };
    if ("delete" in effect) return { delete: this.recordKey(effect.delete) };
    if ("admit" in effect) return { ...effect, admit: this.name(effect.admit) };
    if ("spend" in effect) return { ...effect, spend: this.name(effect.spend) };
    if ("ready" in effect) return { ready: this.name(effect.ready) };
    if ("request" in effect) return { request: this.newTimeout(effect.request) };
    if ("revoke" in effect) return { revoke: this.which(effect.revoke) };
    if ("remove" in effect) return { remove: this.name(effect.remove) };
    return { ...effect, job: this.id(effect.job) };
  }

  /** A hint as the tenant hears it; null if it is about a queue of another one. */
  hint(hint: Hint): Hint | null {
    if ("ready" in hint) return this.owns(hint.ready) ? { ready: this.unname(hint.ready) } : null;
    if ("settled" in hint) return { settled: this.id(hint.settled) };
    if ("lost" in hint) return { lost: this.id(hint.lost) };
    return hint;
  }
}

function hex(half: number): string {
  return half.toString(16).padStart(HALF, "0");
}

/** The tenant whose code must act on a due record. Starts of limits hold stored names, so no scope reads them. */
export function tenantOfRecord({ key: [kind, key] }: Pick<RecordRow, "key">): string | undefined {
  if (kind === START_KIND) return undefined;
  if (NAMED_KINDS.has(kind)) return tenantOf(key);
  const mark = kind.indexOf(TENANT_MARK);
  return mark < 0 ? undefined : kind.slice(mark + 1);
}
