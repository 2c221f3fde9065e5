import type { CurfewError } from "../core/errors.ts";
import { scrubNote, scrubWords } from "../core/job/documents/redaction.ts";
import type { JobRow } from "../core/job/job.ts";
import { StopError } from "../core/job/reasons.ts";
import { type Json, toJsonText } from "../core/schema.ts";
import type { AttemptParts } from "../engine/context.ts";
import { jobPath } from "../ojs/paths.ts";
import { instantText } from "../ojs/wire-fields.ts";
import type { Timer } from "../ports/system.ts";
import { type Reply, type Request, refused, saidBy, type Transport } from "./transport.ts";

interface Waiting {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

interface NotesDeps {
  readonly parts: AttemptParts;
  readonly transport: Transport;
  readonly row: JobRow;
  readonly worker: string;
  /** The server says that this attempt no longer holds the job. */
  lost(): void;
}

const MOST_LOG_LINES = 1_000;
const LONGEST_LOG_LINE = 16_000;
/** The most lines per request, far below the limit of a body. */
const LINES_AT_ONCE = 100;
/** The shortest time between two requests. */
const SPACING = 100;

/**
 * Sends progress, checkpoints and log lines of one attempt, in order and one request at a time. Only the newest progress
 * and checkpoint are sent, so a slow server gets fewer requests.
 */
export class AttemptNotes {
  readonly #host: NotesDeps;
  #progress: string | undefined;
  #checkpoint: string | undefined;
  #waiting: Waiting[] = [];
  #lines: string[] = [];
  #logLines = 0;
  #isOver = false;
  #sending: Promise<void> | undefined;
  #timer: Timer | undefined;

  constructor(host: NotesDeps) {
    this.#host = host;
  }

  progress(fraction: number, note: Json | undefined): void {
    const progress = Number.isFinite(fraction) ? Math.min(1, Math.max(0, fraction)) : 0;
    const { documentLimit } = this.#host.parts;
    const data = note === undefined ? "" : `,"data":${toJsonText(note, "progress", documentLimit)}`;
    this.#progress = `"progress":${progress}${data}`;
    this.#soon();
  }

  /** Resolves when it is durable. */
  checkpoint(state: Json): Promise<void> {
    this.#checkpoint = `"state":${toJsonText(state, "checkpoint", this.#host.parts.documentLimit)}`;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      void this.flush();
    });
  }

  log(message: string, fields: { readonly [key: string]: Json } | undefined): void {
    if (this.#logLines >= MOST_LOG_LINES) return;
    this.#logLines += 1;
    const { row, parts } = this.#host;
    // The server cannot do it if the payload is encrypted.
    const line = {
      at: instantText(parts.clock.now()),
      message: scrubWords(String(message), row).slice(0, 4_000),
      ...(fields && { fields: scrubNote(fields, row) }),
    };
    this.#lines.push(toJsonText(line, "log", LONGEST_LOG_LINE));
    this.#soon();
  }

  #soon(): void {
    if (this.#sending || this.#timer || this.#isOver) return;
    this.#timer = this.#host.parts.system.after(SPACING, () => void this.flush());
  }

  /** Resolves when all notes have an answer. */
  flush(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#sending ??= this.#drain().finally(() => {
      this.#sending = undefined;
    });
    return this.#sending;
  }

  /** The attempt has ended: drops unsent notes. */
  abandon(reason: Error = new StopError("lost", 0, null)): void {
    this.#isOver = true;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#progress = undefined;
    this.#checkpoint = undefined;
    this.#lines = [];
    for (const { reject } of this.#waiting.splice(0)) reject(reason);
  }

  async #drain(): Promise<void> {
    // Wait one microtask, so that notes of one synchronous block share a request.
    await undefined;
    while (!this.#isOver) {
      if (this.#lines.length > 0) await this.#sendLines(this.#lines.splice(0, LINES_AT_ONCE));
      else if (this.#progress !== undefined) await this.#sendProgress();
      else if (this.#checkpoint !== undefined) await this.#sendCheckpoint();
      else return;
    }
  }

  #sendLines(lines: readonly string[]): Promise<boolean> {
    return this.#send("POST", "logs", `"lines":[${lines.join(",")}]`);
  }

  #sendProgress(): Promise<boolean> {
    const fields = this.#progress as string;
    this.#progress = undefined;
    return this.#send("PUT", "progress", fields);
  }

  async #sendCheckpoint(): Promise<void> {
    const fields = this.#checkpoint as string;
    const waiting = this.#waiting.splice(0);
    this.#checkpoint = undefined;
    let failure: unknown = new StopError("lost", 0, null);
    const isKept = await this.#send("PUT", "checkpoint", fields, (error) => {
      failure = error;
    });
    for (const { resolve, reject } of waiting) isKept ? resolve() : reject(failure);
  }

  async #send(
    method: Request["method"],
    what: string,
    fields: string,
    onRefused?: (error: CurfewError) => void,
  ): Promise<boolean> {
    const { row, worker, transport, parts } = this.#host;
    const sender = JSON.stringify({ fence: row.fence, worker_id: worker });
    const request = {
      method,
      what,
      path: jobPath(row.id, what),
      body: `${sender.slice(0, -1)},${fields}}`,
    };
    let reply: Reply | null = null;
    try {
      reply = await transport.insist(request, () => !this.#isOver);
    } catch (error) {
      parts.logger.warn({ job: row.id, what, error }, "could not send progress, a checkpoint or log lines");
    }
    if (reply === null) return false;
    if (reply.status < 300) return true;
    if (reply.status === 409 || reply.status === 404) {
      this.#host.lost();
      return false;
    }
    onRefused?.(refused(what, reply));
    parts.logger.warn(
      { job: row.id, what, because: saidBy(reply) },
      "the server refused progress, a checkpoint or log lines",
    );
    return false;
  }
}
