import { cellOfId, firstCellOf, type Home, homeOf, withCell } from "../../core/home/cell.ts";
import type { IdSource } from "../../core/ids.ts";
import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import type { CommitOptions, Effect, Outcome, RecordKey, RecordRow, Unit } from "../../ports/store.ts";
import { checkUnits } from "../check-batch.ts";
import { perHome } from "./fan-out.ts";
import type { HomeStore } from "./home-store.ts";
import { type SplitUnit, splitUnit } from "./split-unit.ts";

/** What has to reach another home: effects to apply once, or a record to copy. */
type Message =
  | { readonly id: string; readonly to: Home; readonly effects: readonly Effect[] }
  | { readonly id: string; readonly to: Home; readonly copy: RecordKey };

const OUTBOX = "outbox";
const DELIVERED = "delivered";
/** Names the last change of a copied record. In the home of a copy, it names the change that the copy has. */
const COPIED = "copied";
/** The sweep delivers a message that its sender has not delivered by then. */
const DELIVERED_WITHIN = 1_000;
/** After this, the mark of a delivered message is deleted if the message is gone. */
const MARK_KEPT = 600_000;
const COPY_TRIES = 10;
const COPIES_LISTED = 500;

/** Whether the sweep of a store with several homes handles this record itself. */
export function isPostal({ key: [kind] }: RecordRow): boolean {
  return kind === OUTBOX || kind === DELIVERED;
}

/**
 * Commits units in their homes, and delivers what has to reach other homes. A message is durable with its unit, and is
 * applied once: the unit that applies it also marks it as delivered, and is refused if the mark is there.
 */
export class Outbox {
  readonly #homes: readonly HomeStore[];
  readonly #nextId: IdSource;
  readonly #onFailed: (home: Home, error: unknown) => void;

  constructor(homes: readonly HomeStore[], nextId: IdSource, onFailed: (home: Home, error: unknown) => void) {
    this.#homes = homes;
    this.#nextId = nextId;
    this.#onFailed = onFailed;
  }

  async commit(units: readonly Unit[], options: CommitOptions): Promise<Outcome[]> {
    checkUnits(units, options.now);
    const sent: { readonly message: Message; readonly unit: number }[] = [];
    const split = units.map((unit, index) => {
      const one = splitUnit(unit, this.#homes.length);
      const messages = this.#messagesOf(one);
      for (const message of messages) sent.push({ message, unit: index });
      return { ...one, unit: withMessages(one, messages, options.now) };
    });
    const outcomes = await perHome(
      split,
      ({ home }) => home,
      (home, own) =>
        (this.#homes[home] as HomeStore).commit(
          own.map(({ unit }) => unit),
          options,
        ),
    );
    const messages = sent.filter(({ unit }) => outcomes[unit]?.ok).map(({ message }) => message);
    if (messages.length > 0) await this.#deliver(messages, options.now);
    for (const { isLoose, foreign } of split)
      if (isLoose)
        for (const [home, effects] of foreign)
          await (this.#homes[home] as HomeStore).commit([{ effects }], { now: options.now });
    return outcomes.map((outcome, index) => withRevokes(outcome, (split[index] as SplitUnit).revokes));
  }

  /** Handles due messages and marks. What fails stays, and is due again when its hold ends. */
  async handle(records: readonly RecordRow[], now: Instant): Promise<void> {
    const messages = records.filter(({ key }) => key[0] === OUTBOX);
    const marks = records.filter(({ key }) => key[0] === DELIVERED);
    if (messages.length > 0)
      await this.#deliver(
        messages.map(({ body }) => body as unknown as Message),
        now,
      );
    if (marks.length > 0) await this.#forget(marks, now).catch((error) => this.#onFailed(0, error));
  }

  #messagesOf({ cell, home, foreign, copies, isLoose }: SplitUnit): Message[] {
    if (isLoose || (foreign.size === 0 && copies.length === 0)) return [];
    const messages: Message[] = [];
    for (const [to, effects] of foreign) messages.push({ id: this.#nextId(cell), to, effects });
    for (const copy of copies)
      for (let to = 0; to < this.#homes.length; to++)
        if (to !== home) messages.push({ id: this.#nextId(cell), to, copy });
    return messages;
  }

  /** Messages to one home share a call, and messages of one home are deleted together. Failures are left to the sweep. */
  async #deliver(messages: readonly Message[], now: Instant): Promise<void> {
    const groups = [...Map.groupBy(messages, ({ to }) => to)];
    const done = await Promise.all(
      groups.map(async ([to, group]) => {
        try {
          await this.#apply(to, group, now);
          return group;
        } catch (error) {
          this.#onFailed(to, error);
          return [];
        }
      }),
    );
    const units = done.flat().map(({ id }): Unit => ({ effects: [{ delete: [OUTBOX, id] }] }));
    const homeOfUnit = (unit: Unit) => splitUnit(unit, this.#homes.length).home;
    // A message that stays is found as delivered later.
    await perHome(units, homeOfUnit, (home, own) =>
      (this.#homes[home] as HomeStore).commit(own, { now }),
    ).catch((error) => this.#onFailed(-1, error));
  }

  async #apply(to: Home, messages: readonly Message[], now: Instant): Promise<void> {
    const units = messages.flatMap((message): Unit[] => {
      if ("copy" in message) return [];
      const mark: RecordKey = [DELIVERED, withCell(message.id, firstCellOf(to, this.#homes.length))];
      return [
        {
          when: [{ record: mark, version: 0 }],
          effects: [...message.effects, { put: mark, body: { of: message.id }, wakeAt: now + MARK_KEPT }],
        },
      ];
    });
    // Not directly to the home: an effect that is applied there may have copies, which are messages again.
    for (let from = 0; from < units.length; from += 500)
      await this.commit(units.slice(from, from + 500), { now });
    for (const message of messages) if ("copy" in message) await this.#copy(message.copy, to, now);
  }

  /** Deletes the marks of messages that are gone. The others stay for a while. */
  async #forget(marks: readonly RecordRow[], now: Instant): Promise<void> {
    const ids = marks.map(({ body }) => (body as { of: string }).of);
    const keys = ids.map((id): RecordKey => [OUTBOX, id]);
    const messages = await perHome(
      keys,
      ([, id]) => homeOf(cellOfId(id), this.#homes.length),
      (home, own) => (this.#homes[home] as HomeStore).records.load(own),
    );
    const units = marks.map(({ key, version, body }, index): Unit => {
      const when = [{ record: key, version }];
      return messages[index]
        ? { when, effects: [{ put: key, body, wakeAt: now + MARK_KEPT }] }
        : { when, effects: [{ delete: key }] };
    });
    await this.commit(units, { now });
  }

  /**
   * Makes the copies of one home those of the settings again. A home that lost its last writes may have others, and no
   * message is on its way.
   */
  async reconcile(to: Home, now: Instant): Promise<void> {
    if (to === 0) return;
    const [wanted, found] = await Promise.all([this.#changesIn(0), this.#changesIn(to)]);
    const differ = [...new Set([...wanted.keys(), ...found.keys()])].filter(
      (name) => wanted.get(name) !== found.get(name),
    );
    for (const name of differ) await this.#copy(keyOfCopied(name), to, now);
  }

  /** The last change of each copied record, as a home knows it. */
  async #changesIn(home: Home): Promise<Map<string, unknown>> {
    const { records } = this.#homes[home] as HomeStore;
    const changes = new Map<string, unknown>();
    for (let after: string | null = null, isLast = false; !isLast; ) {
      const page: RecordRow[] = await records.list(COPIED, after, COPIES_LISTED);
      for (const { key, body } of page) changes.set(key[1], changeOf(body));
      after = page.at(-1)?.key[1] ?? null;
      isLast = page.length < COPIES_LISTED;
    }
    return changes;
  }

  /**
   * Copies a record from the home of settings. The home of the copy is read first: a delivery that wrote there before had
   * read nothing newer than what is read now, and the guard refuses this one if another writes meanwhile.
   */
  async #copy(key: RecordKey, to: Home, now: Instant): Promise<void> {
    const [source, target] = [this.#homes[0] as HomeStore, this.#homes[to] as HomeStore];
    const mark = copiedKey(key);
    for (let tries = 0; tries < COPY_TRIES; tries++) {
      const [known] = await target.records.load([mark]);
      const [marked, row] = await source.records.load([mark, key]);
      const change = changeOf(marked?.body);
      if (known && changeOf(known.body) === change) return;
      const effect: Effect = row ? { put: key, body: row.body, wakeAt: null } : { delete: key };
      const unit: Unit = {
        when: [{ record: mark, version: known?.version ?? 0 }],
        effects: [effect, { put: mark, body: { change }, wakeAt: null }],
      };
      const [outcome] = await target.commit([unit], { now });
      if (outcome?.ok) return;
    }
  }
}

function changeOf(body: Json | undefined): string | null {
  return (body as { change?: string | null } | undefined)?.change ?? null;
}

function copiedKey([kind, key]: RecordKey): RecordKey {
  return [COPIED, `${kind} ${key}`];
}

function keyOfCopied(name: string): RecordKey {
  const space = name.indexOf(" ");
  return [name.slice(0, space), name.slice(space + 1)];
}

/** The unit as its home commits it: with its messages, and with a mark for each record that is copied. */
function withMessages({ unit, copies }: SplitUnit, messages: readonly Message[], now: Instant): Unit {
  if (messages.length === 0) return unit;
  const wakeAt = now + DELIVERED_WITHIN;
  const puts = messages.map(
    (message): Effect => ({
      put: [OUTBOX, message.id],
      body: message as unknown as Json,
      wakeAt,
    }),
  );
  const marks = copies.map((key): Effect => {
    const { id } = messages.find((message) => "copy" in message && message.copy === key) as Message;
    return { put: copiedKey(key), body: { change: id }, wakeAt: null };
  });
  return { ...unit, effects: [...(unit.effects ?? []), ...marks, ...puts] };
}

/** What another home revokes is not counted. */
function withRevokes(outcome: Outcome, revokes: readonly boolean[]): Outcome {
  if (!outcome.ok || revokes.every(Boolean)) return outcome;
  const counted = [...(outcome.revoked ?? [])];
  return {
    ok: true,
    revoked: revokes.map((isOwn) => (isOwn && counted.shift()) || { pending: 0, leased: 0 }),
  };
}
