import { z } from "zod";
import type { TimeoutRow } from "../../core/timeout/timeout.ts";
import type { Engine } from "../../engine/engine.ts";
import { mailKeyOf, recordKeyOf, sagaName } from "../../engine/sagas/saga-addresses.ts";
import type { SagaListOptions, SagaPage } from "../../engine/sagas/saga-records.ts";
import { writeTimeout } from "../../ojs/timeout-fields.ts";
import type { RecordKey } from "../../ports/store.ts";

import { awaited, call, count, json, options, text, wait } from "./call.ts";
import { readAll, readInSteps, tooLarge } from "./read-in-steps.ts";

const one = z.tuple([text, text]);
const retention = z.int().min(0).max(315_360_000_000);
/** Rows of one reply. */
const MOST = 1_000;

/** A page of sagas. One that is full ends early, and its cursor continues. */
async function sagaPage(engine: Engine, page: SagaListOptions = {}) {
  let cursor: string | null = page.after ?? null;
  const { items: sagas, isFull } = await readInSteps<SagaPage["sagas"][number]>(
    page.limit ?? 100,
    async (_last, limit) => {
      const after = cursor === null ? {} : { after: cursor };
      const found = await engine.sagaRecords.list({ ...page, ...after, limit });
      cursor = found.cursor;
      return { items: found.sagas, isLast: cursor === null };
    },
  );
  return { sagas, cursor, isFull };
}

async function timeoutsOf(engine: Engine, saga: RecordKey) {
  const rows = await readAll<TimeoutRow>(MOST, (last, limit) =>
    engine.store.timeouts.list({ saga }, last?.id ?? null, limit),
  );
  return rows.map(writeTimeout);
}

interface SentMessage {
  readonly saga: string;
  readonly to: string;
  readonly name: string;
  readonly id: string;
}

export const sagaCalls = {
  "sagas.list": call(
    "List sagas",
    z.tuple([options<SagaListOptions>().optional()]),
    async ({ engine }, page) => {
      const { sagas, cursor } = await sagaPage(engine, page);
      return { sagas, cursor };
    },
  ),
  "sagas.after": call(
    "List sagas of a type by id",
    z.tuple([text, text.nullable(), count]),
    async ({ engine }, type, after, limit) => {
      const cursor = after === null ? {} : { after: sagaName({ type, id: after }) };
      const { sagas, isFull } = await sagaPage(engine, { type, limit, ...cursor });
      if (isFull) throw tooLarge();
      return sagas;
    },
  ),
  "sagas.load": call("Load a saga", one, ({ engine }, type, id) =>
    engine.sagaRecords.handle(type, id).load(),
  ),
  "sagas.get": call("Load a saga with its timeouts and messages", one, async ({ engine }, type, id) => {
    const found = await engine.sagaRecords.get(type, id);
    return (
      found && {
        ...found,
        timeouts: found.timeouts.map(writeTimeout),
        messages: found.messages.map(writeTimeout),
      }
    );
  }),
  "sagas.timeouts": call("List the timeouts of a saga", one, async ({ engine }, type, id) => {
    return timeoutsOf(engine, recordKeyOf({ type, id }));
  }),
  "sagas.messages": call("List the messages of a saga", one, async ({ engine }, type, id) => {
    return timeoutsOf(engine, mailKeyOf({ type, id }));
  }),
  "sagas.send": call(
    "Send a message to a saga",
    z.tuple([options<SentMessage>(), json]),
    async ({ engine }, { saga, to, name, id }, payload) => {
      const handle = await engine.sagaRecords.send({ saga, to, name, id, payload });
      return handle.id;
    },
  ),
  "sagas.reply": call("Wait for the reply to a message", z.tuple([text, wait]), ({ engine }, id, within) =>
    awaited(() => engine.sagaRecords.message(id).reply({ within: { milliseconds: within } })),
  ),
  "sagas.revoke": call(
    "Revoke a timeout of a saga",
    z.tuple([text, text, text]),
    ({ engine, by }, type, id, keyOrId) => engine.sagaRecords.handle(type, id).revoke(keyOrId, by),
  ),
  "sagas.end": call("End a saga", z.tuple([text, text, retention]), ({ engine, by }, type, id, kept) =>
    engine.sagaRecords.handle(type, id, { retention: { milliseconds: kept } }).end(by),
  ),
  "sagas.compensate": call(
    "Take a saga back",
    z.tuple([text, text, retention]),
    ({ engine, by }, type, id, kept) =>
      engine.sagaRecords.handle(type, id, { retention: { milliseconds: kept } }).compensate(by),
  ),
};
