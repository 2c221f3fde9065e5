import { createHash } from "node:crypto";
import { CurfewError, refuse } from "../../core/errors.ts";
import type { JobId, Rank } from "../../core/job/job.ts";
import { earlier, type Instant } from "../../core/time.ts";
import type { Looked, LookRequest } from "../../ports/look.ts";
import type { Hint } from "../../ports/store.ts";
import type { System, Timer } from "../../ports/system.ts";
import { HINTED_WITHIN } from "../../ports/timeouts.ts";
import { textArray } from "./array-literal.ts";
import { ClaimFloors, lowestRanks, pauseAfter } from "./claim-floors.ts";
import { Connection, type ConnectionContext } from "./connection.ts";
import { LISTENER_SETTINGS } from "./connections.ts";
import { look } from "./look.ts";
import { ignore, type NotificationLike, type Runner } from "./session.ts";
import { NOTIFY, type Statement } from "./statements.ts";
import { WakeFloor } from "./wake-floor.ts";

/**
 * A hint as it is sent. The ranks of a ready queue are for `ClaimFloors`: the lowest one of each priority. `from` names
 * the connection that listens in the process that sent it. That process has heard of it already.
 */
type SentHint = Hint & { readonly ranks?: readonly Rank[]; readonly from?: number };

/** The most ranks in one hint. With more, and with none, the next claim looks at all ranks. */
const MOST_RANKS = 3;

/** The hints of one call. A queue appears once, whatever the number of its jobs that became available. */
export class HintBatch {
  /** The lowest rank of each priority that became available, by queue; null: unknown ranks. */
  readonly #ready = new Map<string, readonly Rank[] | null>();
  readonly lost: JobId[] = [];
  readonly settled: JobId[] = [];
  #timeoutsAt: Instant | null = null;
  /** The commit itself has sent these hints to other processes. */
  isSent = false;

  timeout(dueAt: Instant, now: Instant): void {
    if (dueAt <= now + HINTED_WITHIN) this.#timeoutsAt = earlier(this.#timeoutsAt, dueAt);
  }

  /** A job of the queue became available. Without a rank: perhaps one did. */
  ready(queue: string, rank?: Rank): void {
    this.#addReady(queue, rank === undefined ? null : [rank]);
  }

  #addReady(queue: string, ranks: readonly Rank[] | null): void {
    const known = this.#ready.get(queue);
    // Most jobs of a call are of one rank.
    if (known?.length === 1 && ranks?.length === 1 && known[0] === ranks[0]) return;
    this.#ready.set(queue, known === undefined ? ranks : lowestRanks(known, ranks));
  }

  get readyRanks(): ReadonlyMap<string, readonly Rank[] | null> {
    return this.#ready;
  }

  merge(other: HintBatch): void {
    this.#timeoutsAt = earlier(this.#timeoutsAt, other.#timeoutsAt);
    for (const [queue, ranks] of other.#ready) this.#addReady(queue, ranks);
    this.lost.push(...other.lost);
    this.settled.push(...other.settled);
  }

  /** The hints that should arrive within milliseconds. */
  urgent(): SentHint[] {
    return [
      ...Array.from(this.#ready, ([queue, ranks]) => readyHint(queue, ranks)),
      ...this.lost.map((id) => ({ lost: id })),
      ...(this.#timeoutsAt === null ? [] : [{ timeouts: this.#timeoutsAt }]),
    ];
  }

  all(): SentHint[] {
    const hints = this.urgent();
    for (let index = 0; index < this.settled.length; index++)
      hints.push({ settled: this.settled[index] as JobId });
    return hints;
  }
}

function readyHint(queue: string, ranks: readonly Rank[] | null): SentHint {
  return ranks === null || ranks.length > MOST_RANKS ? { ready: queue } : { ready: queue, ranks };
}

/** The most hints in one payload. A hint has at most 280 characters, and a payload must be shorter than 8000 bytes. */
const PAYLOAD_HINTS = 28;

function payloadsOf(hints: readonly Hint[]): string[] {
  const payloads: string[] = [];
  for (let start = 0; start < hints.length; start += PAYLOAD_HINTS) {
    payloads.push(JSON.stringify(hints.slice(start, start + PAYLOAD_HINTS)));
  }
  return payloads;
}

/** Anybody may NOTIFY on any channel, so another payload must not end the process. */
function hintsIn(payload: string): SentHint[] {
  try {
    const hints: unknown = JSON.parse(payload);
    return Array.isArray(hints) ? (hints as SentHint[]) : [];
  } catch {
    return [];
  }
}

/** A process of an older version sends no ranks. */
function ranksIn({ ranks }: SentHint): readonly Rank[] | null {
  return Array.isArray(ranks) && ranks.every(Number.isSafeInteger) ? ranks : null;
}

/** The key of the timeouts hint. No queue can have this name. */
const TIMEOUTS = "\0timeouts";

/**
 * Hints on their way to other processes. The first is sent at once. Further ones are collected until the interval is
 * over, because a NOTIFY takes a lock that all notifying commits of the server share.
 */
class Outbox {
  readonly #interval: number;
  readonly #limit: number;
  readonly #send: (hints: readonly SentHint[]) => Promise<void>;
  readonly #system: Pick<System, "after">;
  /** By content, so that a queue that became ready ten times is named once. */
  #unsent = new Map<string, SentHint>();
  #isWaiting = false;

  constructor(
    system: Pick<System, "after">,
    options: { interval: number; limit: number; send: (hints: readonly SentHint[]) => Promise<void> },
  ) {
    this.#system = system;
    this.#interval = options.interval;
    this.#limit = options.limit;
    this.#send = options.send;
  }

  /** How many more hints fit. Further ones are dropped. */
  get room(): number {
    return this.#limit - this.#unsent.size;
  }

  add(hints: readonly SentHint[]): void {
    for (const hint of hints) this.#gather(hint);
    if (!this.#isWaiting && this.#unsent.size > 0) void this.#flush();
  }

  /** Of the timeouts hints, only the earliest is kept. */
  #gather(hint: SentHint): void {
    if ("ready" in hint) {
      const known = this.#unsent.get(hint.ready);
      const ranks = known ? lowestRanks(known.ranks ?? null, hint.ranks ?? null) : (hint.ranks ?? null);
      this.#unsent.set(hint.ready, readyHint(hint.ready, ranks));
      return;
    }
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
      // Listeners poll as well, so a lost hint only causes a delay.
    });
    this.#system.after(this.#interval, () => {
      this.#isWaiting = false;
      this.add([]);
    });
  }
}

/** A hint for a statement that sends it with its own commit. */
export interface CarriedHint {
  /** The channel and the payload. */
  readonly values: readonly [string, string];
  /** The statement ended, well or not. */
  end(): void;
}

/** Idle workers wait for jobs that become ready, so the interval is short. */
const URGENT = { interval: 3, limit: Number.POSITIVE_INFINITY };
/**
 * Few callers wait for settled jobs, and there may be thousands per second: sending all hints would cost more than a
 * quarter of the whole work. Beyond the limit, hints are dropped.
 */
const SETTLED = { interval: 25, limit: 50 };
const RECONNECT_DELAY = 500;
/** An idle connection is used at this pace, so that a server that vanished is noticed. */
const CHECK_EVERY = 2_000;
const ANSWER_LIMIT = 3_000;
const CHECK: Statement = { text: "select 1" };

/** A channel's name has at most 63 bytes, as the schema's has, so the schema is hashed. */
function channelOf(schema: string): string {
  return `curfew_${createHash("sha256").update(schema).digest("hex").slice(0, 16)}`;
}

/** Notifies the listeners of this store at once, and other processes by NOTIFY on a separate connection. */
export class HintChannel {
  readonly #channel: string;
  readonly #mayListen: boolean;
  readonly #connection: Connection;
  /** Where hints are sent and looks are made. */
  readonly #runner: Runner;
  readonly #system: Pick<System, "after" | "monotonic">;
  readonly #listeners = new Set<(hint: Hint) => void>();
  /** When a statement may carry a hint again. */
  #carryAt = 0;
  readonly #urgent: Outbox;
  readonly #settled: Outbox;
  readonly floors: ClaimFloors;
  readonly wakes: WakeFloor;
  #isClosed = false;
  #backend = 0;
  /** Whether the connection was used since the last check, so that it needs none. */
  #isUsed = false;
  #next: Timer | undefined;

  /** With a `sender`, hints are sent on it, and none are received: this needs no connection of its own. */
  constructor(
    schema: string,
    context: ConnectionContext & { readonly system: Pick<System, "monotonic"> },
    sender?: Runner,
  ) {
    const { system } = context;
    this.#channel = channelOf(schema);
    this.#mayListen = !sender;
    this.#system = system;
    this.floors = new ClaimFloors(system);
    this.wakes = new WakeFloor(system);
    const send = (hints: readonly SentHint[]) => this.#send(this.#runner, hints);
    this.#urgent = new Outbox(system, { ...URGENT, send });
    this.#settled = new Outbox(system, { ...SETTLED, send });
    this.#connection = new Connection({
      ...context,
      limit: ANSWER_LIMIT,
      prepare: async (session, client) => {
        client.on("notification", (message) => this.#receive(message));
        await session.execute(LISTENER_SETTINGS);
        const [row] = await session.run({ text: "select pg_backend_pid()" });
        this.#backend = Number(row?.[0]);
        if (this.#listeners.size === 0) return;
        await session.execute(`listen ${this.#channel}`);
        this.floors.hasHints = true;
      },
      onLost: () => {
        this.floors.hasHints = false;
        this.#reconnect();
      },
    });
    this.#runner = sender ?? this.#connection;
  }

  /** Looks on the connection that listens: at rest a process needs no other one for it, and each look proves that it works. */
  async look(request: LookRequest): Promise<Looked> {
    this.assertOpen();
    const looked = await look(this.#runner, request, this);
    this.#isUsed = true;
    return looked;
  }

  /** Looks at all ranks of a queue, and lowers its floors if a job is below them. The next claim finds it then. */
  lookAt(queue: string): void {
    this.look({ queues: [queue], destinations: [], records: [] }).catch(ignore);
  }

  async listen(onHint: (hint: Hint) => void): Promise<AsyncDisposable> {
    if (!this.#mayListen)
      throw refuse(
        "invalid_option",
        "store",
        "opened for a producer",
        'open the engine with role: "producer"',
      );
    // A new function, so that a callback that is registered twice is called twice and removed once.
    const listener = (hint: Hint) => onHint(hint);
    this.#listeners.add(listener);
    try {
      await this.#connection.use((session) => session.execute(`listen ${this.#channel}`));
      this.floors.hasHints = true;
    } catch (error) {
      this.#listeners.delete(listener);
      throw error;
    }
    this.#checkLater();
    return {
      [Symbol.asyncDispose]: async () => {
        this.#listeners.delete(listener);
      },
    };
  }

  assertOpen(): void {
    if (this.#isClosed) throw new CurfewError("closed", "The PostgreSQL store is closed");
  }

  /**
   * A hint that a job of the queue becomes available, for the statement that adds it. It arrives one round trip earlier
   * than one that is sent after the commit. But such a commit waits for the disk with a lock that all notifying commits of
   * the server share. So a process spends a twentieth of its time on them; undefined if this hint should be sent afterwards.
   */
  carry(queue: string, rank: Rank): CarriedHint | undefined {
    if (this.#system.monotonic() < this.#carryAt) return undefined;
    const stopwatch = this.floors.stopwatch();
    this.#carryAt = Number.POSITIVE_INFINITY;
    const hint: SentHint = { ready: queue, ranks: [rank], from: this.#backend };
    return {
      values: [this.#channel, JSON.stringify([hint])],
      end: () => {
        this.#carryAt = this.#system.monotonic() + pauseAfter(stopwatch());
      },
    };
  }

  /** Call this after the commit that caused the hints. */
  notify(batch: HintBatch): void {
    if (this.#isClosed) return;
    for (const [queue, ranks] of batch.readyRanks) this.floors.lower(queue, ranks);
    if (this.#listeners.size > 0) {
      const hints = batch.all();
      queueMicrotask(() => this.#emit(hints));
    }
    if (!batch.isSent) this.#urgent.add(batch.urgent());
    this.#settled.add(batch.settled.slice(0, this.#settled.room).map((id) => ({ settled: id })));
  }

  /** In a caller's transaction, hints are sent with its commit. */
  async notifyWith(runner: Runner, batch: HintBatch): Promise<void> {
    const hints = batch.all();
    if (hints.length > 0) await this.#send(runner, hints);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#listeners.clear();
    this.#next?.cancel();
    await this.#connection.close();
  }

  async #send(runner: Runner, hints: readonly SentHint[]): Promise<void> {
    await runner.run(NOTIFY, [this.#channel, textArray(payloadsOf(hints), (payload) => payload)]);
  }

  #receive({ processId, channel, payload }: NotificationLike): void {
    // This store has already notified its own listeners.
    if (channel !== this.#channel || processId === this.#backend || !payload) return;
    const hints = hintsIn(payload).filter(({ from }) => from === undefined || from !== this.#backend);
    for (const hint of hints) if ("ready" in hint) this.floors.lower(hint.ready, ranksIn(hint));
    this.#emit(hints);
  }

  #emit(hints: readonly SentHint[]): void {
    for (const sent of hints) {
      const hint: Hint = "ready" in sent ? { ready: sent.ready } : sent;
      for (const listener of this.#listeners) listener(hint);
    }
  }

  /** Uses the connection now and then. A listener makes no calls, so nothing else would notice that its server is gone. */
  #checkLater(): void {
    if (this.#isClosed || this.#listeners.size === 0) return;
    this.#next?.cancel();
    this.#next = this.#system.after(CHECK_EVERY, () => {
      if (this.#isUsed) {
        this.#isUsed = false;
        this.#checkLater();
        return;
      }
      // A failure loses the connection, which is opened again then.
      void this.#connection.run(CHECK).then(
        () => this.#checkLater(),
        () => this.#reconnect(),
      );
    });
  }

  #reconnect(): void {
    if (this.#isClosed || this.#listeners.size === 0) return;
    this.#next?.cancel();
    this.#next = this.#system.after(RECONNECT_DELAY, () => {
      void this.#connection.run(CHECK).then(
        () => {
          this.#emit([{ missed: true }]);
          this.#checkLater();
        },
        () => this.#reconnect(),
      );
    });
  }
}
