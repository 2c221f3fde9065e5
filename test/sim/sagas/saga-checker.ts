import { decodeRecord, type SagaRecord } from "../../../src/core/saga/saga-record.ts";
import type { Json } from "../../../src/core/schema.ts";
import type { TimeoutId } from "../../../src/core/timeout/timeout.ts";
import type { Outcome, RecordRow, Store, Unit } from "../../../src/ports/store.ts";
import type { Machine } from "../machine.ts";
import { short } from "../trace.ts";
import { WorldChecker } from "../world-checker.ts";
import { type HandlerWatch, type Script, type SimState, undoes, undoNumber } from "./sim-saga.ts";

interface ToldEvent {
  readonly name: string;
  readonly data: { readonly event: { readonly id: string } };
}

interface Requested {
  readonly saga: string;
  readonly dueAt: number;
  readonly n: number;
  over?: "handled" | "taken back";
}

interface Sent {
  readonly saga: string;
  readonly by: Machine;
  readonly order: number;
  isAcknowledged: boolean;
}

interface Step {
  readonly key: RecordRow["key"];
  readonly before: RecordRow | null;
  readonly after: RecordRow | null;
  readonly unit: Unit;
}

const historyOf = (record: SagaRecord | null) =>
  record ? (record.state as unknown as SimState).history : [];

/** Knows what was sent, requested and revoked, and looks at every commit that touches a saga. */
export class SagaChecker extends WorldChecker implements HandlerWatch {
  readonly requested = new Map<TimeoutId, Requested>();
  readonly sent = new Map<number, Sent>();
  readonly #handled = new Set<number>();
  readonly #dead = new Set<TimeoutId>();
  /** Messages and timeouts whose step was committed, in the order of the commits. */
  readonly #steps: TimeoutId[] = [];
  /** The numbers of messages, by the rows they are stored as. */
  readonly #mail = new Map<TimeoutId, number>();
  readonly #entries = new Map<number, number>();
  /** Of each saga and process, the last message of that process that was handled. */
  readonly #lastHandled = new Map<string, number>();
  steps = 0;

  entered(by: Machine, n: number, eventId: string): number {
    const before = this.#entries.get(n) ?? 0;
    this.#entries.set(n, before + 1);
    this.trace.add(by.name, `enters ${n} (${short(eventId)}), try ${before + 1}`);
    const timeout = this.requested.get(eventId);
    if (timeout && this.now() < timeout.dueAt)
      this.report(
        "nothing is handled before it is due",
        `${n} was entered ${timeout.dueAt - this.now()} ms early`,
      );
    return before;
  }

  /** A store that tells the checker of every commit that touches a saga. */
  watch(store: Store): Store {
    return {
      ...store,
      timeouts: {
        ...store.timeouts,
        insert: (rows, options) => {
          for (const { id, payload } of rows) this.#mail.set(id, numberOf(payload));
          return store.timeouts.insert(rows, options);
        },
      },
      commit: async (units, options) => {
        const answers: Outcome[] = [];
        // One at a time, as units are independent: so each is seen with what was there before it.
        for (const unit of units) {
          const key = sagaKeyOf(unit);
          const before = key ? ((await store.records.load([key]))[0] ?? null) : null;
          const [answer] = await store.commit([unit], options);
          answers.push(answer as Outcome);
          if (!key || !answer?.ok) continue;
          const after = (await store.records.load([key]))[0] ?? null;
          await this.#stepped({ key, before, after, unit }, store);
        }
        return answers;
      },
    };
  }

  async #stepped(step: Step, store: Store): Promise<void> {
    const { key, after, unit } = step;
    this.steps += 1;
    this.#noteEffects(unit, key[1]);
    const removed = unit.effects?.find((effect) => "remove" in effect);
    if (removed) {
      this.#steps.push(removed.remove);
      this.#checkHistory(step, removed.remove);
    }
    const rows = await store.timeouts.list({ saga: key }, null, 1_000);
    const stored = rows.map(({ id }) => id).sort();
    const pending = after ? [...decodeRecord(after.body).pending.map(({ id }) => id)].sort() : [];
    if (stored.join() !== pending.join())
      this.report(
        "the record names what is pending",
        `${key[1]}: record ${pending.map(short)}, store ${stored.map(short)}`,
      );
    for (const [id, timeout] of this.requested)
      if (timeout.saga === key[1] && !pending.includes(id)) timeout.over ??= "taken back";
  }

  #noteEffects(unit: Unit, saga: string): void {
    for (const effect of unit.effects ?? []) {
      if (!("request" in effect) || effect.request.saga?.[0] !== "saga") continue;
      const { id, dueAt, payload } = effect.request;
      this.requested.set(id, { saga, dueAt, n: numberOf(payload) });
    }
  }

  /** A step that handled an event: it adds that event to the history, which nobody else has touched meanwhile. */
  #checkHistory({ key, before, after, unit }: Step, row: TimeoutId): void {
    const put = unit.effects?.find((effect) => "put" in effect);
    const old = before && decodeRecord(before.body);
    const record = after ? decodeRecord(after.body) : null;
    if (after && before && after.version !== before.version + 1)
      this.report("versions never skip", `${key[1]} went from ${before.version} to ${after.version}`);
    // A completed saga whose state was dropped does not tell what happened to it last.
    if (!put || !record || record.state === null) {
      this.#finish(row, this.#mail.get(row) ?? this.requested.get(row)?.n, key[1]);
      return;
    }
    const history = historyOf(record);
    const isNewLife = !old || old.generation !== record.generation;
    const expected = isNewLife ? [] : historyOf(old);
    const n = history.at(-1) as number;
    if (history.slice(0, -1).join() !== expected.join())
      this.report("no step is lost", `${key[1]}: [${expected}] became [${history}]`);
    if (isNewLife && old && old.completedAt === null)
      this.report("a saga that lives is not started again", `${key[1]} by ${n}`);
    this.#checkUndos(key[1], isNewLife ? null : old, record, n);
    this.#finish(row, n, key[1]);
  }

  /** Each committed step that asked for it has one undo, and they run once, the last one first. */
  #checkUndos(saga: string, old: SagaRecord | null, record: SagaRecord, n: number): void {
    const numbers = (undos: SagaRecord["undos"]) =>
      (undos ?? []).map(({ payload }) => (payload as { n: number }).n);
    const before = numbers(old?.undos);
    const isUndo = n < 0;
    if (isUndo && undoNumber(before.at(-1) as number) !== n)
      this.report("undos run in reverse order", `${saga}: ${n} ran, and [${before}] were registered`);
    const isOver = record.completedAt !== null && !record.compensation;
    const after = isUndo ? before.slice(0, -1) : undoes(n) ? [...before, n] : before;
    if (numbers(record.undos).join() !== (isOver ? [] : after).join())
      this.report(
        "a committed step has its undo",
        `${saga}: [${before}] became [${numbers(record.undos)}] by ${n}`,
      );
    if (record.compensation && record.completedAt === null && record.pending.length !== 1)
      this.report(
        "a saga that is taken back waits for one undo",
        `${saga}: ${record.pending.length} are pending`,
      );
  }

  #finish(row: TimeoutId, n: number | undefined, saga: string): void {
    if (n === undefined) return;
    this.trace.add("store", `${saga} handled ${n} (${short(row)})`);
    if (this.#handled.has(n)) this.report("nothing is handled twice", `${saga}: ${n}`);
    this.#handled.add(n);
    const timeout = this.requested.get(row);
    if (!timeout) {
      this.#checkOrder(n, saga);
      return;
    }
    if (timeout.over === "taken back")
      this.report("nothing is handled after its revoke", `${saga}: ${n} (${short(row)})`);
    if (this.now() < timeout.dueAt) this.report("nothing is handled before it is due", `${saga}: ${n}`);
    timeout.over = "handled";
  }

  /** Messages that one process sent to one saga, each after the one before was acknowledged, are handled in that order. */
  #checkOrder(n: number, saga: string): void {
    const message = this.sent.get(n);
    if (!message) {
      this.report("the world is sound", `${saga} handled ${n}, which nobody sent`);
      return;
    }
    const lane = `${saga} ${message.by.name}`;
    const last = this.#lastHandled.get(lane) ?? -1;
    if (message.order < last)
      this.report(
        "messages are handled in the order of arrival",
        `${saga}: ${n} after message ${last} of ${message.by.name}`,
      );
    this.#lastHandled.set(lane, Math.max(last, message.order));
  }

  /** Every step that was committed is told, once and in the order of the commits, and nothing else is. */
  checkEvents(events: readonly Json[]): void {
    const told = (events as unknown as readonly ToldEvent[])
      .filter(({ name }) => name === "saga.handled")
      .map(({ data }) => data.event.id);
    if (told.join() !== this.#steps.join())
      this.report("every step is told once", `${this.#steps.length} committed, ${told.length} told`);
  }

  /** Grows with each event that is handled, taken back or dead. A failed try does not count: it leaves nothing behind. */
  get settled(): number {
    return this.steps + this.#dead.size;
  }

  sawDead(rows: readonly { readonly id: TimeoutId }[]): void {
    for (const { id } of rows) this.#dead.add(id);
  }

  /** When everything should be over: what was promised and has not happened. */
  unsettled(dead: ReadonlySet<number>): string[] {
    const left: string[] = [];
    for (const [n, { saga, isAcknowledged }] of this.sent) {
      if (isAcknowledged && !this.#handled.has(n) && !dead.has(n)) left.push(`message ${n} to ${saga}`);
    }
    for (const [id, { saga, n, over }] of this.requested) {
      if (over === undefined && !dead.has(n)) left.push(`timeout ${n} (${short(id)}) of ${saga}`);
    }
    return left;
  }
}

/** The number of the event that a stored row stands for. */
export function numberOf(payload: string | undefined): number {
  const { script, n } = JSON.parse(payload as string) as { script?: Script; n?: number };
  return script ? script.n : undoNumber(n as number);
}

function sagaKeyOf(unit: Unit): RecordRow["key"] | undefined {
  for (const effect of unit.effects ?? []) {
    if ("put" in effect && effect.put[0] === "saga") return effect.put;
    if ("delete" in effect && effect.delete[0] === "saga") return effect.delete;
  }
  return undefined;
}
