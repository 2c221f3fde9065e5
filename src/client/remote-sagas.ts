import { refuse, refuseUnknownKeys } from "../core/errors.ts";
import { identityText, prepareMessage } from "../core/saga/message.ts";
import { planOf, type SagaPlan } from "../core/saga/saga.ts";
import type { Json } from "../core/schema.ts";
import type { Duration } from "../core/time.ts";
import type { TimeoutRow } from "../core/timeout/timeout.ts";
import type { MessageHandleApi, SagaHandleApi, SagaRecordsApi } from "../engine/curfew-api.ts";
import type { SagaView } from "../engine/sagas/saga-handle.ts";
import type { SagaDetail } from "../engine/sagas/saga-records.ts";
import type { MessageOptions } from "../engine/sagas/sagas.ts";
import type { Awaited } from "../ojs/call-names.ts";
import { readTimeout } from "../ojs/timeout-fields.ts";
import type { Caller } from "./caller.ts";
import { refuseTx } from "./remote-timeouts.ts";
import { waitFor } from "./remote-wait.ts";

/** A message that the server stored. */
export class RemoteMessageHandle implements MessageHandleApi {
  readonly id: string;
  readonly #caller: Caller;

  constructor(caller: Caller, id: string) {
    this.#caller = caller;
    this.id = id;
  }

  /** The value that a handler passes to `saga.reply()` for this message. */
  reply(options: { readonly within: Duration }): Promise<Json> {
    if (options?.within === undefined)
      throw refuse("invalid_duration", "within", options?.within, 'write a duration such as "30s"');
    return waitFor<Json>(this.#caller, `the answer to message ${this.id}`, options, (wait) =>
      this.#caller.call<Awaited<Json>>("sagas.reply", [this.id, wait], { wait }),
    );
  }
}

/** A saga at the server. */
export class RemoteSagaHandle<State = unknown> implements SagaHandleApi<State> {
  readonly type: string;
  readonly id: string;
  readonly #caller: Caller;
  readonly #retention: number;

  constructor(caller: Caller, { type, retention }: Pick<SagaPlan, "type" | "retention">, id: string) {
    this.#caller = caller;
    this.#retention = retention;
    this.type = type;
    this.id = id;
  }

  load(): Promise<SagaView<State> | null> {
    return this.#caller.call("sagas.load", [this.type, this.id]);
  }

  async timeouts(): Promise<TimeoutRow[]> {
    const rows = await this.#caller.call<unknown[]>("sagas.timeouts", [this.type, this.id]);
    return rows.map((row) => readTimeout<TimeoutRow>(row));
  }

  async messages(): Promise<TimeoutRow[]> {
    const rows = await this.#caller.call<unknown[]>("sagas.messages", [this.type, this.id]);
    return rows.map((row) => readTimeout<TimeoutRow>(row));
  }

  revoke(keyOrId: string): Promise<"revoked" | "not-pending"> {
    return this.#caller.call("sagas.revoke", [this.type, this.id, keyOrId]);
  }

  compensate(): Promise<"begun" | "resumed" | "running" | null> {
    return this.#caller.call("sagas.compensate", [this.type, this.id, this.#retention]);
  }

  end(): Promise<boolean> {
    return this.#caller.call("sagas.end", [this.type, this.id, this.#retention]);
  }
}

/** The message is checked and its saga found here: the server has no definition. */
export async function sendMessage(
  caller: Caller,
  saga: unknown,
  name: string,
  payload: unknown,
  options: MessageOptions = {},
): Promise<RemoteMessageHandle> {
  const plan = planOf(saga);
  refuseUnknownKeys(options, "options", ["id", "tx"]);
  refuseTx(options);
  const { to, payload: text } = await prepareMessage(plan, name, payload, caller.documentLimit);
  // With an id of the sender, a message whose reply was lost is handled once.
  const id = options.id ?? caller.nextId();
  await caller.call("sagas.send", [{ saga: plan.type, to, name, id }, JSON.parse(text)]);
  return new RemoteMessageHandle(caller, id);
}

export function sagaHandle<State>(caller: Caller, saga: unknown, id: unknown): RemoteSagaHandle<State> {
  return new RemoteSagaHandle(caller, planOf(saga), identityText(id, "id"));
}

export function listSagas<State>(
  caller: Caller,
  saga: unknown,
  page: { readonly after?: string; readonly limit?: number } = {},
): Promise<SagaView<State>[]> {
  refuseUnknownKeys(page, "page", ["after", "limit"]);
  return caller.call("sagas.after", [planOf(saga).type, page.after ?? null, page.limit ?? 100]);
}

export function remoteSagaRecords(caller: Caller): SagaRecordsApi {
  return {
    list: (options) => caller.call("sagas.list", [options]),
    async get(type, id) {
      const found = await caller.call<SagaDetail | null>("sagas.get", [type, id]);
      return (
        found && {
          ...found,
          timeouts: found.timeouts.map((row) => readTimeout<SagaDetail["timeouts"][number]>(row)),
          messages: found.messages.map((row) => readTimeout<SagaDetail["messages"][number]>(row)),
        }
      );
    },
  };
}
