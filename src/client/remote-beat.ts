import type { JobRow } from "../core/job/job.ts";
import type { AttemptParts } from "../engine/context.ts";
import type { EngineClock } from "../engine/runtime/engine-clock.ts";
import { BeatPace, BUSY_EVERY, IDLE_EVERY, SHORTEST_REST } from "../engine/worker/beat-pace.ts";
import { PATHS } from "../ojs/paths.ts";
import { type Deadlines, list, object, readDeadlines, readServerTime } from "../ojs/read-job.ts";
import type { WireBeat } from "../ojs/wire-types.ts";
import type { RemoteAttempt } from "./remote-attempt.ts";
import { refused, type Transport } from "./transport.ts";

/** The server's answer for one job of a beat. */
export interface Heard {
  readonly directive: "continue" | "cancel" | "soft_timeout" | "lost";
  readonly deadlines: Deadlines | undefined;
}

/** A job of a beat, and whether the beat counts for it. */
interface Named {
  readonly row: Pick<JobRow, "id" | "fence">;
  readonly isBeat: boolean;
  readonly hear?: (heard: Heard) => void;
  /** The beat did not reach the server. */
  readonly unsent?: () => void;
}

interface BeatDeps {
  readonly id: string;
  readonly parts: AttemptParts;
  readonly transport: Transport;
  readonly clock: EngineClock;
  /** The worker's description. */
  about(): Record<string, unknown>;
  attempts(): Iterable<RemoteAttempt>;
  /** Jobs without a running attempt that are still ours: prefetched ones and unreported verdicts. */
  others(): Iterable<JobRow>;
  /** The clock has learned the server's time. */
  heardTime(): void;
  hear(attempt: RemoteAttempt, heard: Heard): void;
  giveBack(rows: readonly JobRow[]): void;
  /** The directive for the worker. */
  direct(state: unknown): void;
  failed(error: unknown, during: string): void;
}

const LONGEST_PACE = 5_000;
const MOST_NAMED = 1_000;
/** The time limit of a beat; shorter for short heartbeats. The next beat says the same. */
const TIMEOUT = 3_000;
const SHORTEST_TIMEOUT = 500;

/**
 * The worker's heartbeat. About once a second it names all running jobs, and the reply says which were cancelled, lost or
 * extended. It counts as a beat for a job every min(heartbeat/4, 5 s) if the job set no heartbeat, else only after a beat of
 * the handler (SEMANTICS 3.6).
 */
export class RemoteBeat {
  readonly pace: BeatPace;
  readonly #host: BeatDeps;

  constructor(host: BeatDeps) {
    this.#host = host;
    const { system, logger } = host.parts;
    const onError = (error: unknown) => host.failed(error, "beat");
    this.pace = new BeatPace({ system, logger, round: () => this.#round(), onError });
  }

  async #round(): Promise<number> {
    this.pace.began(this.#host.clock.elapsed());
    const named = this.#named();
    for (let from = 0; from === 0 || from < named.length; from += MOST_NAMED)
      await this.#send(named.slice(from, from + MOST_NAMED));
    return this.#rest();
  }

  #named(): Named[] {
    const now = this.#host.clock.elapsed();
    const named: Named[] = [];
    for (const attempt of this.#host.attempts()) {
      if (attempt.isOver || attempt.isLost) continue;
      const isBeat = this.#isDue(attempt, now);
      if (isBeat) {
        attempt.beatenAt = now;
        attempt.hasUnsentBeat = false;
      }
      named.push({
        row: attempt.row,
        isBeat,
        hear: (heard) => this.#host.hear(attempt, heard),
        unsent: () => {
          attempt.beatenAt = Number.NEGATIVE_INFINITY;
          attempt.hasUnsentBeat ||= isBeat && attempt.policy.beats === "handler";
        },
      });
    }
    for (const row of this.#host.others()) named.push({ row, isBeat: row.policy?.beats === "worker" });
    return named;
  }

  #isDue(attempt: RemoteAttempt, now: number): boolean {
    const { heartbeat } = attempt.row;
    if (heartbeat === null) return false;
    if (attempt.policy.beats === "handler") return attempt.hasUnsentBeat;
    return now - attempt.beatenAt >= Math.min(heartbeat / 4, LONGEST_PACE) - SHORTEST_REST;
  }

  async #send(named: readonly Named[]): Promise<void> {
    const { id, transport, clock, direct } = this.#host;
    const jobs = (isBeat: boolean) =>
      named.filter((job) => job.isBeat === isBeat).map(({ row }) => ({ id: row.id, fence: row.fence }));
    const beat: WireBeat = { worker_id: id, active_jobs: jobs(true), watched_jobs: jobs(false) };
    const body = JSON.stringify({ ...this.#host.about(), ...beat });
    const request = {
      method: "POST",
      path: PATHS.beat,
      what: "beat",
      body,
      timeout: this.#timeout(),
    } as const;
    const slept = clock.slept();
    const reply = await transport.once(request).catch((error) => {
      for (const job of named) job.unsent?.();
      throw error;
    });
    if (reply.status >= 300) {
      for (const job of named) job.unsent?.();
      throw refused("beat", reply);
    }
    const said = object(reply.body, "reply");
    clock.learn(readServerTime(said.server_time), { ...reply, slept });
    this.#host.heardTime();
    this.#tell(named, list(said.jobs ?? [], "reply.jobs"));
    direct.call(this.#host, said.state);
  }

  #timeout(): number {
    let timeout = TIMEOUT;
    for (const { row } of this.#host.attempts())
      timeout = Math.min(
        timeout,
        Math.max(SHORTEST_TIMEOUT, (row.heartbeat ?? Number.POSITIVE_INFINITY) / 2),
      );
    return timeout;
  }

  /** An answer belongs to the attempt that asked, not to a later one of the same job. */
  #tell(named: readonly Named[], answers: readonly unknown[]): void {
    const byKey = new Map<string, Named>();
    for (const job of named) byKey.set(job.row.id, job).set(`${job.row.id} ${job.row.fence}`, job);
    for (const answer of answers) {
      const { id, fence, directive, deadlines } = object(answer, "reply.jobs[]");
      const job = byKey.get(fence === undefined ? String(id) : `${id} ${fence}`);
      job?.hear?.({
        directive: directive as Heard["directive"],
        deadlines: deadlines === undefined ? undefined : readDeadlines(deadlines),
      });
    }
  }

  /** Asks which of these jobs are still ours. Only those may run. */
  async confirm(rows: readonly JobRow[]): Promise<Set<JobRow>> {
    const valid = new Set<JobRow>();
    const named = rows.map((row) => ({
      row,
      isBeat: false,
      hear: ({ directive }: Heard) => {
        if (directive === "continue") valid.add(row);
        // Its time was up before it had a slot, so the handler never ran.
        else if (directive === "soft_timeout") this.#host.giveBack([row]);
      },
    }));
    await this.#send(named);
    return valid;
  }

  #rest(): number {
    let rest = IDLE_EVERY;
    for (const { row, policy } of this.#host.attempts()) {
      // A handler's own beat wakes this loop.
      const every = policy.beats === "worker" ? (row.heartbeat ?? IDLE_EVERY) / 4 : BUSY_EVERY;
      rest = Math.min(rest, BUSY_EVERY, Math.max(SHORTEST_REST, every));
    }
    for (const _row of this.#host.others()) return Math.min(rest, BUSY_EVERY);
    return rest;
  }

  /** Sends the last beat of a closing worker. */
  async close(): Promise<void> {
    await this.pace.stop();
    await this.#send([]).catch((error) => this.#host.failed(error, "close"));
  }
}
