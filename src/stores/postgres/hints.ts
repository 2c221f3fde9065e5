import { createHash } from "node:crypto";
import { CurfewError } from "../../core/errors.ts";
import type { JobId } from "../../core/job/job.ts";
import { earlier, type Instant } from "../../core/time.ts";
import type { Hint } from "../../ports/store.ts";
import type { System } from "../../ports/system.ts";
import { HINTED_WITHIN } from "../../ports/timeouts.ts";
import { textArray } from "./array-literal.ts";
import { Connection, type ConnectionOptions, type NotificationLike, type Runner } from "./connection.ts";
import { NOTIFY } from "./statements.ts";

/** What one call has to tell; a queue is named once, however many of its jobs became available. */
export class HintBatch {
  readonly ready = new Set<string>();
  readonly lost: JobId[] = [];
  readonly settled: JobId[] = [];
  #timeoutsAt: Instant | null = null;

  timeout(dueAt: Instant, now: Instant): void {
    if (dueAt <= now + HINTED_WITHIN) this.#timeoutsAt = earlier(this.#timeoutsAt, dueAt);
  }

  merge(other: HintBatch): void {
    this.#timeoutsAt = earlier(this.#timeoutsAt, other.#timeoutsAt);
    for (const queue of other.ready) this.ready.add(queue);
    this.lost.push(...other.lost);
    this.settled.push(...other.settled);
  }

  /** What somebody waits for by the millisecond. */
  urgent(): Hint[] {
    return [
      ...Array.from(this.ready, (queue) => ({ ready: queue })),
      ...this.lost.map((id) => ({ lost: id })),
      ...(this.#timeoutsAt === null ? [] : [{ timeouts: this.#timeoutsAt }]),
    ];
  }

  all(): Hint[] {
    return [...this.urgent(), ...this.settled.map((id) => ({ settled: id }))];
  }
}

/** Hints in one payload: at most 128 characters each, and a payload holds less than 8000 bytes. */
const PAYLOAD_HINTS = 50;

/** Hints as payloads. */
function payloadsOf(hints: readonly Hint[]): string[] {
  const payloads: string[] = [];
  for (let start = 0; start < hints.length; start += PAYLOAD_HINTS) {
    payloads.push(JSON.stringify(hints.slice(start, start + PAYLOAD_HINTS)));
  }
  return payloads;
}

/** Anybody may NOTIFY on any channel, and what is no list of hints must not end the process. */
function hintsIn(payload: string): Hint[] {
  try {
    const hints: unknown = JSON.parse(payload);
    return Array.isArray(hints) ? (hints as Hint[]) : [];
  } catch {
    return [];
  }
}

/** Under this the hint of timeouts is gathered; no queue has such a name. */
const TIMEOUTS = "\0timeouts";

/**
 * Hints on their way to other processes. The first goes out at once; what follows is gathered until the interval is
 * over, because a NOTIFY takes a lock that all notifying commits of the server share.
 */
class Outbox {
  readonly #interval: number;
  readonly #limit: number;
  readonly #send: (hints: readonly Hint[]) => Promise<void>;
  readonly #system: Pick<System, "after">;
  /** By what they say, so that a queue which became ready ten times is named once. */
  #unsent = new Map<string, Hint>();
  #isWaiting = false;

  constructor(
    system: Pick<System, "after">,
    options: { interval: number; limit: number; send: (hints: readonly Hint[]) => Promise<void> },
  ) {
    this.#system = system;
    this.#interval = options.interval;
    this.#limit = options.limit;
    this.#send = options.send;
  }

  /** How many more hints it would keep; the rest goes unsaid. */
  get room(): number {
    return this.#limit - this.#unsent.size;
  }

  add(hints: readonly Hint[]): void {
    for (const hint of hints) this.#gather(hint);
    if (!this.#isWaiting && this.#unsent.size > 0) void this.#flush();
  }

  /** Of timeouts only the first that is due is told. */
  #gather(hint: Hint): void {
    if (!("timeouts" in hint)) {
      this.#unsent.set(Object.values(hint)[0] as string, hint);
      return;
    }
    const known = this.#unsent.get(TIMEOUTS);
    if (!known || !("timeouts" in known) || known.timeouts > hint.timeouts) this.#unsent.set(TIMEOUTS, hint);
  }

  async #flush(): Promise<void> {
    this.#isWaiting = true;
    const hints = [...this.#unsent.values()];
    this.#unsent = new Map();
    await this.#send(hints).catch(() => {
      // Whoever listens polls as well, so a hint that could not be sent is only late.
    });
    this.#system.after(this.#interval, () => {
      this.#isWaiting = false;
      this.add([]);
    });
  }
}

/** A job that became ready is waited for by idle workers, so little is gathered. */
const URGENT = { interval: 3, limit: Number.POSITIVE_INFINITY };
/**
 * A settled job is waited for by few, and there may be thousands in a second: telling of all of them would cost more
 * than a quarter of the whole work. Beyond the limit the rest goes unsaid.
 */
const SETTLED = { interval: 25, limit: 50 };
const RECONNECT_DELAY = 500;

/** A channel's name is at most 63 bytes, and so is the schema's. */
function channelOf(schema: string): string {
  return `curfew_${createHash("sha256").update(schema).digest("hex").slice(0, 16)}`;
}

/** Tells the store's listeners here at once, and those of other processes by NOTIFY on a connection of its own. */
export class HintChannel {
  readonly #channel: string;
  readonly #lane: Connection;
  readonly #system: Pick<System, "after">;
  readonly #listeners = new Set<(hint: Hint) => void>();
  readonly #urgent: Outbox;
  readonly #settled: Outbox;
  #isClosed = false;
  #backend = 0;

  constructor(schema: string, lane: Pick<ConnectionOptions, "pool" | "bind">, system: Pick<System, "after">) {
    this.#channel = channelOf(schema);
    this.#system = system;
    const send = (hints: readonly Hint[]) => this.#notify(this.#lane, hints);
    this.#urgent = new Outbox(system, { ...URGENT, send });
    this.#settled = new Outbox(system, { ...SETTLED, send });
    this.#lane = new Connection({
      ...lane,
      prepare: async (session, client) => {
        client.on("notification", (message) => this.#receive(message));
        // Hints may be lost, so their commits need not wait for the disk.
        await session.execute("set synchronous_commit = off");
        const [row] = await session.run({ text: "select pg_backend_pid()" });
        this.#backend = Number(row?.[0]);
        if (this.#listeners.size > 0) await session.execute(`listen ${this.#channel}`);
      },
      onLost: () => this.#reconnect(),
    });
  }

  async listen(onHint: (hint: Hint) => void): Promise<AsyncDisposable> {
    // A function of our own, so that one listener given twice is heard twice and taken back once.
    const listener = (hint: Hint) => onHint(hint);
    this.#listeners.add(listener);
    try {
      await this.#lane.use((session) => session.execute(`listen ${this.#channel}`));
    } catch (error) {
      this.#listeners.delete(listener);
      throw error;
    }
    return {
      [Symbol.asyncDispose]: async () => {
        this.#listeners.delete(listener);
      },
    };
  }

  assertOpen(): void {
    if (this.#isClosed) throw new CurfewError("closed", "The PostgreSQL store is closed");
  }

  /** Called after the commit that the hints tell of. */
  tell(batch: HintBatch): void {
    if (this.#isClosed) return;
    if (this.#listeners.size > 0) {
      const hints = batch.all();
      queueMicrotask(() => this.#emit(hints));
    }
    this.#urgent.add(batch.urgent());
    this.#settled.add(batch.settled.slice(0, this.#settled.room).map((id) => ({ settled: id })));
  }

  /** Within a caller's transaction the hints can only travel with its commit. */
  async tellWith(runner: Runner, batch: HintBatch): Promise<void> {
    const hints = batch.all();
    if (hints.length > 0) await this.#notify(runner, hints);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#listeners.clear();
    await this.#lane.close();
  }

  async #notify(runner: Runner, hints: readonly Hint[]): Promise<void> {
    await runner.run(NOTIFY, [this.#channel, textArray(payloadsOf(hints), (payload) => payload)]);
  }

  #receive({ processId, channel, payload }: NotificationLike): void {
    // What this store sent was told here already.
    if (channel !== this.#channel || processId === this.#backend || !payload) return;
    this.#emit(hintsIn(payload));
  }

  #emit(hints: readonly Hint[]): void {
    for (const hint of hints) for (const listener of this.#listeners) listener(hint);
  }

  /** Opens the connection again, for otherwise nothing would: a listener makes no calls. */
  #reconnect(): void {
    if (this.#isClosed || this.#listeners.size === 0) return;
    this.#system.after(RECONNECT_DELAY, () => {
      if (this.#isClosed) return;
      void this.#lane.use(async () => {}).catch(() => this.#reconnect());
    });
  }
}
