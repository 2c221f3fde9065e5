import type { Command } from "commander";
import { countNumber, REASON, type ReasonOption, withPage, withTarget } from "../declare.ts";
import { printable } from "../output/paint.ts";
import { timeoutTable } from "../output/timeout-table.ts";
import { relativeText } from "../output/times.ts";
import { act, type TargetContext } from "../run-command.ts";
import { futureOption } from "../target/filter-options.ts";
import { offered } from "../target/not-found.ts";
import type { Fields } from "../target/target.ts";

const PATH = "/ojs/v1/admin/timeouts";
const ID = "0198f7e2-7b1c-7000-8000-000000000001";

export function register(timeouts: Command): void {
  timeouts.description(
    "Timeouts: messages that are delivered at a given time, to sagas, jobs and your own code.",
  );
  declareList(timeouts.command("ls"));
  const revoke = timeouts.command("revoke").description("Revoke a timeout, so that it is not delivered.");
  declareAction(
    revoke,
    "revoke",
    '{"id","revoked":true,"was"}',
    ({ was }) => `The timeout is revoked; it was ${was}.`,
  );
  const requeue = timeouts
    .command("requeue")
    .description("Deliver a dead timeout again, at once and with all its tries.");
  declareAction(requeue, "requeue", "the timeout", () => "The timeout is delivered again at once.");
  declareReschedule(timeouts.command("reschedule"));
}

interface ListOptions {
  readonly destination?: string;
  readonly dead?: boolean;
  readonly from?: string;
  readonly to?: string;
  readonly limit: number;
}

function declareList(command: Command): void {
  command.description("List timeouts by the time at which they are due.");
  withTarget(command)
    .option("--destination <name>", "only for this destination")
    .option("--dead", "only those that failed too many times")
    .option("--from <time>", "due at or after: an instant, or 10m from now")
    .option("--to <time>", "due before")
    .option("--limit <count>", "at most this many, up to 200", countNumber, 50);
  withPage(command, {
    examples: [
      ["timeouts ls --to 1h", "timeouts that are due within the next hour"],
      ["timeouts ls --dead", "dead timeouts"],
    ],
    json: '{"items":[{"id","destination","state","due_at","key","saga","name","lease_until","tries","dead_at","error"}],"has_more"}',
  });
  act<ListOptions>(command, list);
}

async function list({ target, output }: TargetContext, options: ListOptions): Promise<void> {
  const now = target.now();
  const { items, pagination } = await offered(target, "timeouts", () =>
    target.get(PATH, {
      destination: options.destination,
      dead: options.dead,
      from: options.from === undefined ? undefined : futureOption(options.from, now, "--from"),
      to: options.to === undefined ? undefined : futureOption(options.to, now, "--to"),
      limit: Math.max(1, Math.min(200, options.limit)),
    }),
  );
  const rows = items as readonly Fields[];
  output.answer({ items, has_more: (pagination as Fields).has_more }, () =>
    rows.length === 0 ? "No timeouts." : timeoutTable(rows, now),
  );
}

function pathOf(id: string, action: string): string {
  return `${PATH}/${encodeURIComponent(id)}/${action}`;
}

function declareAction(
  command: Command,
  action: "revoke" | "requeue",
  json: string,
  text: (reply: Fields) => string,
): void {
  command.argument("<id>", "its id, as timeouts ls shows it");
  withTarget(command).option(...REASON);
  withPage(command, { examples: [[`timeouts ${action} ${ID}`, "one timeout"]], json });
  act<ReasonOption>(command, async ({ target, output }, { reason }, [id]) => {
    const reply = await offered(target, "timeouts", () =>
      target.send("POST", pathOf(id as string, action), { reason }),
    );
    output.answer(reply, () => text(reply));
  });
}

function declareReschedule(command: Command): void {
  command
    .description("Change when a pending timeout is due.")
    .argument("<id>", "its id, as timeouts ls shows it")
    .argument("<time>", "an instant such as 2030-01-31T12:00:00Z, or 10m from now");
  withTarget(command).option(...REASON);
  withPage(command, {
    examples: [[`timeouts reschedule ${ID} 10m`, "in ten minutes"]],
    json: "the timeout",
  });
  act<ReasonOption>(command, async ({ target, output }, { reason }, [id, time]) => {
    const now = target.now();
    const due_at = futureOption(time as string, now, "time");
    const reply = await offered(target, "timeouts", () =>
      target.send("POST", pathOf(id as string, "reschedule"), { due_at, reason }),
    );
    output.answer(
      reply,
      () => `Timeout ${printable(id as string)} is due ${relativeText(reply.due_at, now)}.`,
    );
  });
}
