import { setTimeout as sleep } from "node:timers/promises";
import { Injectable, Module } from "@nestjs/common";
import type { AttemptContext } from "curfew";
import { Processor } from "curfew/nestjs";
import { welcome } from "./jobs.ts";

/** Stands for the service of a mail provider. */
@Injectable()
export class Mailer {
  readonly sent: string[] = [];

  /** Takes some milliseconds, as a real one does. The signal ends it when time is up or the process stops. */
  async send(to: string, takes: number, signal: AbortSignal): Promise<string> {
    await sleep(takes, undefined, { signal });
    this.sent.push(to);
    return `mail to ${to}`;
  }
}

@Injectable()
class MailProcessor {
  readonly #mailer: Mailer;

  constructor(mailer: Mailer) {
    this.#mailer = mailer;
  }

  @Processor(welcome, { concurrency: 5 })
  async welcome({ payload, signal }: AttemptContext<{ to: string; takes: number }>) {
    return { sent: await this.#mailer.send(payload.to, payload.takes, signal) };
  }
}

@Module({ providers: [Mailer, MailProcessor], exports: [Mailer] })
export class MailModule {}
