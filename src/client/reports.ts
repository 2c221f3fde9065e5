import type { JobRow } from "../core/job/job.ts";
import type { Verdict } from "../engine/attempt/running-attempt.ts";
import type { Logger } from "../ports/log.ts";
import type { System, Timer } from "../ports/system.ts";
import type { AttemptNotes } from "./remote-attempt-notes.ts";
import { repliesOf, reportRequest, reportsRequest, type SentReport, wireReport } from "./report-wire.ts";
import { LATER, type Reply, refusalOf, saidBy, type Transport } from "./transport.ts";

/** What a worker has to report. */
interface NewReport {
  readonly row: JobRow;
  readonly verdict: Verdict;
  /** What was written before the verdict, and is sent before it. */
  readonly notes?: AttemptNotes | undefined;
}

/** A verdict on its way. */
interface Report extends NewReport {
  verdict: Verdict;
  wire: SentReport;
  /** It is sent by itself: together with others it was not taken. */
  isAlone: boolean;
  /** It went out before without an answer, so its refusal may tell of its own effect. */
  wasSent: boolean;
}

interface ReportsHost {
  readonly id: string;
  readonly transport: Transport;
  readonly system: System;
  readonly logger: Logger;
  /** A verdict was refused: somebody else has the job, or has judged it. */
  lost(row: JobRow): void;
  /** Reports are off the list. */
  reported(): void;
}

/** More at once would only wait at the server. */
const MOST_IN_FLIGHT = 16;
/** A request that hangs must not keep other verdicts from being told: so long they wait for one under way at most. */
const LONGEST_WAIT = 20;
const MOST_TOGETHER = 100;
/** In characters: far below the limit of a body, also where each of them takes three bytes. */
const MOST_TEXT = 500_000;
/** A server that does not take many at once is asked again after this time: it may have been replaced. */
const ASK_AGAIN_AFTER = 60_000;

/**
 * Verdicts on their way to the server. Each is sent until it has an answer, under the fence of its attempt: through an
 * outage it waits here, and afterwards the server says whether it still counts (SEMANTICS 3.8). One that comes alone is
 * sent at once; those that come while a request is under way travel together in the next. Not a `Batcher`: up to 16
 * requests run at once, and the kind of a report says which request takes it.
 */
export class Reports {
  readonly #host: ReportsHost;
  /** Their notes go before them. */
  readonly #noting = new Set<Report>();
  #waiting: Report[] = [];
  readonly #sending = new Set<Report>();
  #inFlight = 0;
  #timer: Timer | undefined;
  #aloneUntil = Number.NEGATIVE_INFINITY;
  #onIdle: (() => void)[] = [];
  #isAbandoned = false;

  constructor(host: ReportsHost) {
    this.#host = host;
  }

  get backlog(): number {
    return this.#noting.size + this.#waiting.length + this.#sending.size;
  }

  /** The jobs whose verdict has no answer yet: beats go on for them. */
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
      .catch((error) => this.#host.logger.warn({ job: row.id, error }, "notes of an attempt were not taken"))
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

  /** The first that waits, and all others that can travel with it. */
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
      // An older server knows nothing of many at once; another may not take a body of this size.
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

  /** Sends it once more, by itself. */
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

  /** After a try without an answer it may be our own verdict that is found there: under our fence, nothing was lost. */
  #refused({ row, verdict }: Report, reply: Reply): void {
    const details = refusalOf(reply).details as { readonly fence?: unknown } | undefined;
    if (!reply.isRepeated || details?.fence !== row.fence) this.#host.lost(row);
    else
      this.#host.logger.info(
        { job: row.id, verdict: verdict.type },
        "a repeated report found the job settled",
      );
  }

  /** A result that the server does not take is a failed attempt, and is reported as one. */
  #sendRefusal(report: Report, reply: Reply): void {
    const message = `The result was not taken: ${saidBy(reply)}`;
    const error = { type: "invalid_result", code: "invalid_result", message };
    const { signalled } = report.verdict as Extract<Verdict, { type: "succeed" }>;
    report.verdict = { type: "fail", error, signalled };
    report.wire = wireReport(report.row, report.verdict);
    // What was refused had no effect, however often it was sent.
    report.wasSent = false;
    this.#again(report, false);
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
    this.#timer?.cancel();
    this.#timer = undefined;
    const open = [...this.#waiting, ...this.#sending, ...this.#noting];
    this.#waiting = [];
    for (const { notes } of open) notes?.abandon();
  }
}
