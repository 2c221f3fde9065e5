import type { JobRow } from "../core/job/job.ts";
import type { Verdict } from "../engine/attempt/running-attempt.ts";
import type { Logger } from "../ports/log.ts";
import type { System, Timer } from "../ports/system.ts";
import type { AttemptNotes } from "./remote-attempt-notes.ts";
import { repliesOf, reportRequest, reportsRequest, type SentReport, wireReport } from "./report-wire.ts";
import { LATER, type Reply, refusalOf, saidBy, type Transport } from "./transport.ts";

interface NewReport {
  readonly row: JobRow;
  readonly verdict: Verdict;
  /** Notes that must be sent before the verdict. */
  readonly notes?: AttemptNotes | undefined;
}

interface Report extends NewReport {
  verdict: Verdict;
  wire: SentReport;
  /** Send it in its own request: a batch with it was refused. */
  isAlone: boolean;
  /** An earlier try got no answer, so a refusal may be due to that try. */
  wasSent: boolean;
}

interface ReportsDeps {
  readonly id: string;
  readonly transport: Transport;
  readonly system: System;
  readonly logger: Logger;
  /** A verdict was refused: the attempt no longer holds the job. */
  lost(row: JobRow): void;
  reported(): void;
}

/** More would only queue at the server. */
const MOST_IN_FLIGHT = 16;
/** The longest that a verdict waits for a request under way, which may hang. */
const LONGEST_WAIT = 20;
const MOST_TOGETHER = 100;
/** In characters of up to three bytes: far below the limit of a body. */
const MOST_TEXT = 500_000;
/** Try the batch route again after this time: the server may have been upgraded. */
const ASK_AGAIN_AFTER = 60_000;

/**
 * Sends verdicts until each has an answer. A verdict waits here during an outage; its fence then decides whether it still
 * counts (SEMANTICS 3.8). A single verdict is sent at once. Verdicts that arrive during a request share the next one. Not a
 * `Batcher`: up to 16 requests run at once, one kind of report per request.
 */
export class Reports {
  readonly #host: ReportsDeps;
  /** Reports whose notes are being sent. */
  readonly #noting = new Set<Report>();
  #waiting: Report[] = [];
  readonly #sending = new Set<Report>();
  #inFlight = 0;
  #timer: Timer | undefined;
  #aloneUntil = Number.NEGATIVE_INFINITY;
  #onIdle: (() => void)[] = [];
  #isAbandoned = false;

  constructor(host: ReportsDeps) {
    this.#host = host;
  }

  get backlog(): number {
    return this.#noting.size + this.#waiting.length + this.#sending.size;
  }

  /** Jobs whose verdict has no answer yet. Beats continue for them. */
  *rows(): Iterable<JobRow> {
    for (const { row } of this.#noting) yield row;
    for (const { row } of this.#sending) yield row;
    for (const { row } of this.#waiting) yield row;
  }

  push({ row, verdict, notes }: NewReport): void {
    const report = { row, verdict, notes, wire: wireReport(row, verdict), isAlone: false, wasSent: false };
    if (!notes) {
      this.#add(report);
      return;
    }
    this.#noting.add(report);
    void notes
      .flush()
      .catch((error) =>
        this.#host.logger.warn({ job: row.id, error }, "could not send the notes of an attempt"),
      )
      .then(() => {
        this.#noting.delete(report);
        if (this.#isAbandoned) this.#done();
        else this.#add(report);
      });
  }

  #add(report: Report): void {
    this.#waiting.push(report);
    if (this.#inFlight === 0 || this.#waiting.length >= MOST_TOGETHER) this.#pump();
    else this.#timer ??= this.#host.system.after(LONGEST_WAIT, () => this.#pump());
  }

  #pump(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    while (this.#waiting.length > 0 && this.#inFlight < MOST_IN_FLIGHT) this.#dispatch(this.#take());
  }

  /** The first waiting report, and all others that fit into its request. */
  #take(): readonly Report[] {
    const [first, ...others] = this.#waiting as [Report, ...Report[]];
    const taken = [first];
    const left: Report[] = [];
    let size = first.wire.text.length;
    const isAlone = first.isAlone || this.#host.system.monotonic() < this.#aloneUntil;
    for (const report of others) {
      const { what, text } = report.wire;
      const fits = taken.length < MOST_TOGETHER && size + text.length <= MOST_TEXT;
      if (isAlone || report.isAlone || what !== first.wire.what || !fits) left.push(report);
      else {
        taken.push(report);
        size += text.length;
      }
    }
    this.#waiting = left;
    return taken;
  }

  #dispatch(reports: readonly Report[]): void {
    this.#inFlight += 1;
    for (const report of reports) this.#sending.add(report);
    const [first] = reports as [Report];
    const sent = reports.length === 1 ? this.#sendOne(first) : this.#sendMany(reports);
    void sent
      .catch((error) => {
        for (const report of reports) if (this.#sending.has(report)) this.#gaveUp(report, error);
      })
      .finally(() => {
        this.#inFlight -= 1;
        for (const report of reports) this.#sending.delete(report);
        this.#done();
      });
  }

  #done(): void {
    this.#host.reported();
    if (this.backlog === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
    this.#pump();
  }

  async #sendOne(report: Report): Promise<void> {
    const { transport, id } = this.#host;
    const request = reportRequest(id, report.wire);
    const reply = await transport.insist(request, () => !this.#isAbandoned, report.wasSent);
    if (reply !== null) this.#answered(report, reply);
  }

  async #sendMany(reports: readonly Report[]): Promise<void> {
    const { transport, id, system } = this.#host;
    const wires = reports.map(({ wire }) => wire);
    const request = reportsRequest(id, (wires[0] as SentReport).what, wires);
    const reply = await transport.insist(request, () => !this.#isAbandoned);
    if (reply === null) return;
    const replies = repliesOf(reply, reports.length);
    if (!replies) {
      // An older server has no batch route. Another may refuse the size of the body.
      if (reply.status === 404 || reply.status === 405)
        this.#aloneUntil = system.monotonic() + ASK_AGAIN_AFTER;
      const isSent = reply.isRepeated || reply.status < 300 || reply.status >= 500;
      for (const report of reports) this.#again(report, isSent);
      return;
    }
    for (const [index, report] of reports.entries()) {
      const one = replies[index] as Reply;
      if (LATER.has(one.status)) this.#again(report, reply.isRepeated || one.status >= 500);
      else this.#answered(report, one);
    }
  }

  /** Sends it again, in its own request. */
  #again(report: Report, wasSent: boolean): void {
    this.#sending.delete(report);
    if (this.#isAbandoned) return;
    report.isAlone = true;
    report.wasSent ||= wasSent;
    this.#waiting.push(report);
  }

  #answered(report: Report, reply: Reply): void {
    if (reply.status < 300) return;
    if (reply.status === 409 || reply.status === 404) this.#refused(report, reply);
    else if (report.verdict.type === "succeed") this.#sendRefusal(report, reply);
    else this.#gaveUp(report, saidBy(reply));
  }

  /** If an earlier try got no answer and the fence is still ours, that try counted and nothing was lost. */
  #refused({ row, verdict }: Report, reply: Reply): void {
    const details = refusalOf(reply).details as { readonly fence?: unknown } | undefined;
    if (!reply.isRepeated || details?.fence !== row.fence) this.#host.lost(row);
    else
      this.#host.logger.info(
        { job: row.id, verdict: verdict.type },
        "an earlier try of this report already counted",
      );
  }

  /** A refused result makes the attempt a failure. */
  #sendRefusal(report: Report, reply: Reply): void {
    const message = `The server refused the result: ${saidBy(reply)}`;
    const error = { type: "invalid_result", code: "invalid_result", message };
    const { signalled } = report.verdict as Extract<Verdict, { type: "succeed" }>;
    report.verdict = { type: "fail", error, signalled };
    report.wire = wireReport(report.row, report.verdict);
    // A refused report had no effect.
    report.wasSent = false;
    this.#again(report, false);
  }

  #gaveUp({ row, verdict }: Report, because: unknown): void {
    this.#host.logger.error(
      { job: row.id, verdict: verdict.type, because },
      "report not accepted; the server will end the attempt when its heartbeat or deadline runs out",
    );
  }

  /** Resolves when every report has its answer. */
  flushed(): Promise<void> {
    return this.backlog === 0 ? Promise.resolve() : new Promise((resolve) => this.#onIdle.push(resolve));
  }

  /** Stops all retries. */
  abandon(): void {
    this.#isAbandoned = true;
    this.#timer?.cancel();
    this.#timer = undefined;
    const open = [...this.#waiting, ...this.#sending, ...this.#noting];
    this.#waiting = [];
    for (const { notes } of open) notes?.abandon();
  }
}
