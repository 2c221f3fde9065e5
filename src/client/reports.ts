import type { JobRow } from "../core/job/job.ts";
import type { Verdict } from "../engine/running-attempt.ts";
import type { Logger } from "../ports/log.ts";
import type { AttemptNotes } from "./attempt-notes.ts";
import { reportRequest } from "./report-wire.ts";
import { type Reply, refusalOf, saidBy, type Transport } from "./transport.ts";

/** A verdict on its way. */
interface Report {
  readonly row: JobRow;
  verdict: Verdict;
  /** What was written before the verdict, and is sent before it. */
  readonly notes?: AttemptNotes | undefined;
}

interface ReportsHost {
  readonly id: string;
  readonly transport: Transport;
  readonly logger: Logger;
  /** A verdict was refused: somebody else has the job, or has judged it. */
  lost(row: JobRow): void;
  /** A report is off the list. */
  reported(): void;
}

/** More at once would only wait at the server. */
const MOST_IN_FLIGHT = 16;

/**
 * Verdicts on their way to the server. Each is sent until it has an answer, under the fence of its attempt: through an
 * outage it waits here, and afterwards the server says whether it still counts (SEMANTICS 3.8).
 */
export class Reports {
  readonly #host: ReportsHost;
  readonly #waiting: Report[] = [];
  readonly #sending = new Set<Report>();
  #onIdle: (() => void)[] = [];
  #isAbandoned = false;

  constructor(host: ReportsHost) {
    this.#host = host;
  }

  get backlog(): number {
    return this.#waiting.length + this.#sending.size;
  }

  /** The jobs whose verdict has no answer yet: beats go on for them. */
  *rows(): Iterable<JobRow> {
    for (const { row } of this.#sending) yield row;
    for (const { row } of this.#waiting) yield row;
  }

  push(report: Report): void {
    this.#waiting.push(report);
    this.#pump();
  }

  #pump(): void {
    while (this.#sending.size < MOST_IN_FLIGHT) {
      const report = this.#waiting.shift();
      if (!report) return;
      this.#sending.add(report);
      void this.#send(report)
        .catch((error) => this.#gaveUp(report, error))
        .finally(() => this.#done(report));
    }
  }

  #done(report: Report): void {
    this.#sending.delete(report);
    this.#host.reported();
    if (this.backlog === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
    this.#pump();
  }

  async #send(report: Report): Promise<void> {
    const { transport, id } = this.#host;
    await report.notes?.flush();
    const request = reportRequest(report.row, id, report.verdict);
    const reply = await transport.insist(request, () => !this.#isAbandoned);
    if (reply === null || reply.status < 300) return;
    if (reply.status === 409 || reply.status === 404) this.#refused(report, reply);
    else await this.#sendRefusal(report, reply);
  }

  /** After a try without an answer it may be our own verdict that is found there: under our fence, nothing was lost. */
  #refused(report: Report, reply: Reply): void {
    const { row, verdict } = report;
    const details = refusalOf(reply).details as { readonly fence?: unknown } | undefined;
    if (!reply.isRepeated || details?.fence !== row.fence) this.#host.lost(row);
    else
      this.#host.logger.info(
        { job: row.id, verdict: verdict.type },
        "a repeated report found the job settled",
      );
  }

  /** A result that the server does not take is a failed attempt, and is reported as one. */
  async #sendRefusal(report: Report, reply: Reply): Promise<void> {
    if (report.verdict.type !== "succeed") return this.#gaveUp(report, saidBy(reply));
    const message = `The result was not taken: ${saidBy(reply)}`;
    const error = { type: "invalid_result", code: "invalid_result", message };
    const { signalled } = report.verdict;
    report.verdict = { type: "fail", error, signalled };
    await this.#send(report);
  }

  #gaveUp({ row, verdict }: Report, because: unknown): void {
    this.#host.logger.error(
      { job: row.id, verdict: verdict.type, because },
      "a report was not taken; the server will judge the attempt by its silence",
    );
  }

  /** Resolves when every report has its answer. */
  flushed(): Promise<void> {
    return this.backlog === 0 ? Promise.resolve() : new Promise((resolve) => this.#onIdle.push(resolve));
  }

  /** What has no answer by now gets no further try. */
  abandon(): void {
    this.#isAbandoned = true;
    for (const { notes } of [...this.#waiting.splice(0), ...this.#sending]) notes?.abandon();
  }
}
