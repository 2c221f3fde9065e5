import { createIdSource } from "../core/ids.ts";
import type { JobRow } from "../core/job/job.ts";
import type { Processor } from "../engine/attempt/processor.ts";
import type { AttemptParts } from "../engine/context.ts";
import type { EngineClock } from "../engine/runtime/engine-clock.ts";
import { PATHS } from "../ojs/paths.ts";
import { list, object, readFetched } from "../ojs/read-job.ts";
import type { WireFetch, WireSettings } from "../ojs/wire-types.ts";
import { settingsFields } from "../ojs/write-enqueue.ts";
import type { Fetched } from "./remote-consumer.ts";
import { type Reply, ReplyTooLarge, refused, type Transport } from "./transport.ts";

interface FetcherDeps {
  readonly id: string;
  readonly parts: AttemptParts;
  readonly clock: EngineClock;
  readonly transport: Transport;
}

/** How long the server may hold a fetch without jobs. Short, because a closing worker waits for it. */
const WAIT = 2_000;
const TIMEOUT = 10_000;
const MOST_AT_ONCE = 200;

export class Fetcher {
  readonly #host: FetcherDeps;
  readonly #definitions: WireFetch["definitions"];
  readonly #versions: WireFetch["versions"] | undefined;
  readonly #nextId: () => string;
  /** Ids of fetches without a reply, by queue. The server gives the same jobs for the same id. */
  readonly #unanswered = new Map<string, string>();
  #most = MOST_AT_ONCE;

  constructor(host: FetcherDeps, processors: readonly Processor[]) {
    this.#host = host;
    const { system, clock } = host.parts;
    this.#nextId = createIdSource(() => clock.now(), system.fill);
    this.#definitions = Object.fromEntries(
      processors.map(({ definition }) => [definition.type, definitionFields(definition.settings)]),
    );
    const versions = processors.flatMap(({ definition: { type, versions } }) =>
      versions ? [[type, [...versions]]] : [],
    );
    this.#versions = versions.length > 0 ? Object.fromEntries(versions) : undefined;
  }

  async fetch(queue: string, wanted: number): Promise<Fetched> {
    const { id, transport } = this.#host;
    const fetchId = this.#unanswered.get(queue) ?? this.#nextId();
    const count = Math.min(wanted, this.#most);
    this.#unanswered.set(queue, fetchId);
    const asked: WireFetch = {
      queues: [queue],
      count,
      worker_id: id,
      soft_timeout: true,
      wait_ms: WAIT,
      fetch_id: fetchId,
      definitions: this.#definitions,
      ...(this.#versions && { versions: this.#versions }),
    };
    const body = JSON.stringify(asked);
    const request = {
      method: "POST",
      path: PATHS.fetch,
      what: "fetch",
      body,
      timeout: TIMEOUT,
    } as const;
    const slept = this.#host.clock.slept();
    const reply = await transport.once(request).catch((error) => {
      if (error instanceof ReplyTooLarge) this.#most = Math.max(1, Math.floor(count / 2));
      throw error;
    });
    // A 5xx of a proxy may hide the server's reply, so keep the id.
    if (reply.status < 500) this.#unanswered.delete(queue);
    if (reply.status === 204) return { rows: [], hasWaited: false };
    if (reply.status >= 300) throw refused("fetch", reply);
    return { rows: this.#read(reply, slept), hasWaited: reply.receivedAt - reply.sentAt >= WAIT / 2 };
  }

  #read(reply: Reply, slept: number): JobRow[] {
    const { clock, parts } = this.#host;
    const rows: JobRow[] = [];
    for (const job of list(object(reply.body, "reply").jobs, "reply.jobs")) {
      try {
        const { row, serverTime } = readFetched(job);
        clock.learn(serverTime, { ...reply, slept });
        rows.push(row);
      } catch (error) {
        // Keep the other jobs. The server takes this one back when its heartbeat runs out.
        parts.logger.error({ error }, "unreadable job in a fetch reply");
      }
    }
    return rows;
  }
}

/** The definition's settings, for jobs whose producer had none. `wait` and `total` were fixed at enqueue (SEMANTICS 2). */
function definitionFields(settings: Processor["definition"]["settings"]): WireSettings {
  const { wait: _wait, total: _total, ...timeouts } = settings.timeouts ?? {};
  return settingsFields({ ...settings, timeouts });
}
