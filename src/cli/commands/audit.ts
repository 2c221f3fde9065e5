import type { Command } from "commander";
import { countNumber, withPage, withTarget } from "../declare.ts";
import { dim, printable } from "../output/paint.ts";
import { type Column, listText } from "../output/table.ts";
import { relativeText } from "../output/times.ts";
import { act } from "../run-command.ts";
import type { Fields } from "../target/target.ts";

interface AuditOptions {
  readonly actor?: string;
  readonly action?: string;
  readonly job?: string;
  readonly queue?: string;
  readonly limit: number;
}

const columns = (now: number): Column<Fields>[] => [
  { title: "WHEN", show: ({ at }) => relativeText(at, now) },
  { title: "WHO", show: ({ actor }) => printable(String(actor)), shrinkTo: 8 },
  { title: "ACTION", show: ({ action }) => printable(String(action)), shrinkTo: 12 },
  { title: "ON", show: (entry) => printable(targetOf(entry)), shrinkTo: 12 },
  { title: "REASON", show: ({ reason }) => printable(String(reason ?? "")), shrinkTo: 10 },
];

/** Where the details name what was acted on, by the first word of the action. */
const NAMED: Readonly<Record<string, readonly string[]>> = {
  calendar: ["calendar"],
  cron: ["cron"],
  limit: ["key"],
  pool: ["pool"],
  schema: ["type", "version"],
  tenant: ["tenant"],
  timeout: ["timeout"],
  webhook: ["subscription"],
  worker: ["worker"],
  workflow: ["workflow"],
};

/** What was acted on. Only jobs and queues have fields of their own. */
export function targetOf({ action, job_id, queue, details }: Fields): string {
  const about = (details ?? {}) as Fields;
  const names = NAMED[String(action).split(".", 1)[0] as string] ?? [];
  const named = names.flatMap((name) => (about[name] == null ? [] : [String(about[name])])).join(" ");
  return String(job_id ?? queue ?? (named || sagaOf(about) || jobsOf(about)));
}

/** A bulk action names the jobs of its batch. */
const jobsOf = ({ jobs }: Fields) => (Array.isArray(jobs) ? `${jobs.length} jobs` : "");

/** `saga.end` and `saga.compensate` name the type and the id in fields of different names. */
function sagaOf({ type, saga, id }: Fields): string {
  if (saga === undefined) return "";
  return type === undefined ? `${saga} ${id}` : `${type} ${saga}`;
}

export function register(command: Command): void {
  command.description("List what operators did, the newest first.");
  withTarget(command)
    .option("--actor <name>", "only by this name, as in WHO: a key, or user@machine")
    .option("--action <name>", "only this action, such as job.cancel")
    .option("--job <id>", "only on this job")
    .option("--queue <name>", "only on this queue")
    .option("--limit <count>", "at most this many, up to 200", countNumber, 50);
  withPage(command, {
    examples: [
      ["audit --job 0198f7e2-7b1c-7000-8000-000000000001", "who touched this job"],
      ["audit --queue payments", "who paused or changed this queue"],
    ],
    json: '{"items":[{"at","actor","action","job_id"?,"queue"?,"reason"?,…}],"has_more"}',
    more: "WHO is the name of the key for actions through a server with keys, and user@machine for commands with --store.\nEntries are kept for 90 days (keepAudit of openEngine).",
  });
  act<AuditOptions>(command, async ({ target, output }, { actor, action, job, queue, limit }) => {
    const { items, pagination } = await target.get("/ojs/v1/admin/audit", {
      actor,
      action,
      queue,
      job_id: job,
      per_page: Math.min(200, limit),
    });
    const { has_more } = pagination as Fields;
    output.answer({ items, has_more }, () =>
      listText(columns(target.now()), items as readonly Fields[], "No entries."),
    );
    if (has_more) output.note(dim("There are more; pass --limit or a filter.", process.stderr));
  });
}
