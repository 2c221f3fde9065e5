import type { Json } from "../../../src/core/schema.ts";
import type { Effect, Store } from "../../../src/ports/store.ts";
import { type StoreMutant, withUnits } from "../mutants.ts";

function withoutEffects(store: Store, isDropped: (effect: Effect) => boolean): Store {
  return withUnits(store, (unit) =>
    unit.effects ? { ...unit, effects: unit.effects.filter((effect) => !isDropped(effect)) } : unit,
  );
}

function withTimeouts(store: Store, timeouts: Partial<Store["timeouts"]>): Store {
  return { ...store, timeouts: { ...store.timeouts, ...timeouts } };
}

const isTimeout = (effect: Effect) => "request" in effect && effect.request.saga?.[0] === "saga";

type Put = Extract<Effect, { put: unknown }>;
const isSagaPut = (effect: Effect): effect is Put => "put" in effect && effect.put[0] === "saga";

function withUndos(effect: Put, change: (undos: readonly Json[]) => readonly Json[]): Put {
  const body = effect.body as { readonly undos?: readonly Json[] };
  return body.undos ? { ...effect, body: { ...body, undos: change(body.undos) } as Json } : effect;
}

const withoutUndo = (effect: Put) => withUndos(effect, (undos) => undos.slice(0, -1));
const turned = (effect: Put) => withUndos(effect, (undos) => undos.toReversed());

export const SAGA_MUTANTS: readonly StoreMutant[] = [
  {
    name: "a store that does not compare the version of a saga",
    caughtBy: /no step is lost|nothing is handled twice|record names/,
    mutate: (store) => withUnits(store, ({ when: _when, ...unit }) => unit),
  },
  {
    name: "a store that forgets some of what steps tell",
    caughtBy: /every step is told once/,
    mutate: (store, dice) => withoutEffects(store, (effect) => "event" in effect && dice.chance(0.1)),
  },
  {
    name: "a store that hands out what is not due yet",
    caughtBy: /before it is due/,
    mutate: (store) =>
      withTimeouts(store, {
        claimDue: (request) => store.timeouts.claimDue({ ...request, now: request.now + 400 }),
        nextDueAt: async (names) => {
          const at = await store.timeouts.nextDueAt(names);
          return at === null ? null : at - 400;
        },
      }),
  },
  {
    name: "a mailbox that does not know its first message",
    caughtBy: /order of arrival/,
    mutate: (store) =>
      withTimeouts(store, {
        list: async (filter, after, limit) =>
          filter.saga?.[0] === "mail" ? [] : store.timeouts.list(filter, after, limit),
      }),
  },
  {
    name: "a store that forgets some timeouts",
    caughtBy: /record names what is pending|everything settles/,
    mutate: (store, dice) => withoutEffects(store, (effect) => isTimeout(effect) && dice.chance(0.05)),
  },
  {
    name: "a store that forgets to take back",
    caughtBy: /record names what is pending/,
    mutate: (store) => withoutEffects(store, (effect) => "revoke" in effect),
  },
  {
    name: "a store that forgets some undos of a saga",
    caughtBy: /committed step has its undo|reverse order/,
    mutate: (store, dice) =>
      withUnits(store, (unit) => ({
        ...unit,
        effects: (unit.effects ?? []).map((effect) =>
          isSagaPut(effect) && dice.chance(0.1) ? withoutUndo(effect) : effect,
        ),
      })),
  },
  {
    name: "a store that turns the undos of a saga round",
    caughtBy: /committed step has its undo|reverse order/,
    mutate: (store) =>
      withUnits(store, (unit) => ({
        ...unit,
        effects: (unit.effects ?? []).map((effect) => (isSagaPut(effect) ? turned(effect) : effect)),
      })),
  },
  {
    name: "a store that loses acknowledged messages",
    caughtBy: /everything settles/,
    mutate: (store, dice) =>
      withTimeouts(store, {
        insert: async (rows, options) => {
          const kept = rows.filter(() => !dice.chance(0.05));
          await store.timeouts.insert(kept, options);
          return rows.map(() => "created" as const);
        },
      }),
  },
];
