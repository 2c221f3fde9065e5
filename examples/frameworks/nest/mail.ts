import { Injectable, Module } from "@nestjs/common";
import type { AttemptContext } from "curfew";
import { Processor } from "curfew/nestjs";
import { welcome } from "./jobs.ts";

/** Stands for the service of a mail provider. */
@Injectable()
export class Mailer {
  readonly sent: string[] = [];

  async send(to: string): Promise<string> {
    this.sent.push(to);
    return `mail to ${to}`;
  }
}

@Injectable()
export class MailProcessor {
  readonly #mailer: Mailer;

  constructor(mailer: Mailer) {
    this.#mailer = mailer;
  }

  @Processor(welcome, { concurrency: 5 })
  async welcome({ payload }: AttemptContext<{ to: string }>) {
    return { sent: await this.#mailer.send(payload.to) };
  }
}

@Module({ providers: [Mailer, MailProcessor], exports: [Mailer] })
export class MailModule {}
