import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Comment, type Node, parseSync } from "oxc-parser";

/** An interface whose options the page lists. */
interface Listed {
  readonly title: string;
  readonly intro: string;
  readonly path: string;
  readonly name: string;
  /** What members mean whose comment in the code does not say it alone. It stands before the comment. */
  readonly notes?: Readonly<Record<string, string>>;
}

const QUEUE_NOTE = 'The queue. Default `"default"`, or that of the definition.';

const LISTED: readonly Listed[] = [
  {
    title: "openEngine(options)",
    intro: "`store` is the only one that you must name.",
    path: "src/open.ts",
    name: "OpenOptions",
  },
  {
    title: "defineJob(options)",
    intro: "`type` is the only one that you must name. `P` and `R` are the schemas that you pass.",
    path: "src/core/job/job-definition.ts",
    name: "DefinitionOptions",
    notes: { queue: 'The queue. Default `"default"`.' },
  },
  {
    title: "engine.enqueue(definition, payload, options)",
    intro: "All of them may be left out.",
    path: "src/core/job/enqueue/envelope.ts",
    name: "EnqueueOptions",
    notes: {
      queue: QUEUE_NOTE,
      priority: "-100 (last) to 100 (first). Default that of the definition.",
      meta: "Values of your own, kept with the job.",
    },
  },
  {
    title: "engine.work(options)",
    intro: "Also of `client.work(options)`. `processors` is the only one that you must name.",
    path: "src/engine/worker/work-options.ts",
    name: "WorkOptions",
  },
  {
    title: "timeouts",
    intro: "[Timeouts](guides/timeouts.md) says what each of them does.",
    path: "src/core/job/policy/policy.ts",
    name: "TimeoutOptions",
  },
  {
    title: "retry",
    intro: "[Retries](guides/retries.md) says how they work together.",
    path: "src/core/job/policy/retry.ts",
    name: "RetryOptions",
  },
  {
    title: "limit",
    intro: "Of a definition or an enqueue. [Rate limits](guides/rate-limits.md) says how they work.",
    path: "src/core/limit/limit.ts",
    name: "LimitOptions",
    notes: { rate: "The most starts (`limit`) in any period of a length (`per`)." },
  },
  {
    title: "unique",
    intro: "Of a definition or an enqueue. [Unique jobs](guides/unique-jobs.md) says how they work.",
    path: "src/core/job/enqueue/unique-key.ts",
    name: "UniqueOptions",
  },
  {
    title: "engine.queues.configure(queue, options)",
    intro: "Settings of a queue for all processes. [Queues](guides/queues.md) says how they work.",
    path: "src/core/limit/queue-settings.ts",
    name: "QueueOptions",
    notes: {
      depth: "The most waiting jobs (`most`), what to do beyond it (`onFull`), and when to warn (`warnAt`).",
    },
  },
  {
    title: "engine.crons.put(name, schedule)",
    intro:
      "Beside these: `job`, `payload`, `options` and `ifExists`. [Crons](guides/cron.md) says how they work.",
    path: "src/core/cron/cron.ts",
    name: "CronOptions",
    notes: {
      overlap: "What to do while the last run is active.",
      missed: "What to do with instants at which no engine ran.",
      clockChange: "What to do with times that a clock change skips or repeats.",
    },
  },
  {
    title: "sandboxed(definition, module, options)",
    intro: "[Sandboxed processors](guides/sandbox.md) says how they work.",
    path: "src/sandbox/sandboxed.ts",
    name: "SandboxOptions",
  },
  {
    title: "createServer(engine, options)",
    intro: "Of `curfew/server`. [Server](guides/server.md) says how they work.",
    path: "src/server/app.ts",
    name: "ServerOptions",
    notes: {
      logger: "Where lines about requests go. Default: none are written.",
      limits: "Bounds of request bodies.",
    },
  },
  {
    title: "openClient(options)",
    intro: "Of `curfew/client`. [Remote workers](guides/remote-workers.md) says how they work.",
    path: "src/client/client-options.ts",
    name: "ClientOptions",
    notes: { logger: "Where warnings and errors go. Default: one line each on standard error." },
  },
];

/** Interfaces whose members others inherit. */
const INHERITED: Readonly<Record<string, string>> = {
  PolicyOptions: "src/core/job/policy/policy.ts",
  ScheduleOptions: "src/core/cron/expression.ts",
  GuardOptions: "src/server/access/request-guard.ts",
};

interface Member {
  readonly key: string;
  readonly type: string;
  readonly says: string;
}

/** A table of all options by name, and one for each interface: names, types and comments as they stand in the code. */
export function optionTables(): string[] {
  const listed = LISTED.map((each) => ({
    ...each,
    members: membersOf(each.path, each.name, each.notes ?? {}),
  }));
  const sections = listed.map(({ title, intro, members }) => {
    const rows = members.map(({ key, type, says }) => `| \`${key}\` | ${code(type)} | ${says} |`);
    return `## ${title}\n\n${intro}\n\n| option | type | meaning |\n|---|---|---|\n${rows.join("\n")}\n`;
  });
  const places = new Map<string, string[]>();
  for (const { title, members } of listed) {
    for (const { key } of members)
      places.set(key, [...(places.get(key) ?? []), `[${title.replace(/\(.*/, "")}](#${anchor(title)})`]);
  }
  const names = [...places].sort(([a], [b]) => a.localeCompare(b, "en"));
  const rows = names.map(([key, of]) => `| \`${key}\` | ${of.join(", ")} |`);
  return [`## All options by name\n\n| option | of |\n|---|---|\n${rows.join("\n")}\n`, ...sections];
}

/** The anchor of a heading, as GitHub and the site make it. */
function anchor(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^a-z0-9\s_-]/g, "")
    .replaceAll(" ", "-");
}

/** The members of an interface, those that it inherits at the end. */
function membersOf(path: string, name: string, notes: Readonly<Record<string, string>>): Member[] {
  const text = readFileSync(join(import.meta.dirname, "..", path), "utf8");
  const { program, comments } = parseSync(path, text);
  const found = program.body
    .map((node) => (node.type === "ExportNamedDeclaration" ? node.declaration : node))
    .find((node) => node?.type === "TSInterfaceDeclaration" && node.id.name === name);
  if (found?.type !== "TSInterfaceDeclaration") throw new Error(`${path} has no interface ${name}`);
  const own = found.body.body.map((member) => memberOf(member, { text, comments, name, notes }));
  const inherited = found.extends.flatMap(({ expression }) => {
    const parent = text.slice(expression.start, expression.end);
    const file = INHERITED[parent];
    if (file === undefined) throw new Error(`${name} inherits ${parent}; add its file to INHERITED`);
    return membersOf(file, parent, notes);
  });
  return [...own, ...inherited];
}

interface Around {
  readonly text: string;
  readonly comments: readonly Comment[];
  readonly name: string;
  readonly notes: Readonly<Record<string, string>>;
}

function memberOf(member: Node, { text, comments, name, notes }: Around): Member {
  if (member.type !== "TSPropertySignature" || member.key.type !== "Identifier" || !member.typeAnnotation)
    throw new Error(`${name} has a member that is not a property with a type`);
  const key = member.key.name;
  const { start, end } = member.typeAnnotation.typeAnnotation;
  const comment = comments.findLast((each) => each.end < member.start);
  const isNext = comment && text.slice(comment.end, member.start).trim() === "";
  const says = [notes[key] ?? "", isNext ? sentence(comment.value) : ""].join(" ").trim();
  if (says === "") throw new Error(`${name}.${key} has no comment`);
  return { key, type: text.slice(start, end), says };
}

/** The text of a comment on one line. */
function sentence(comment: string): string {
  return comment
    .split("\n")
    .map((line) => line.replace(/^\s*\*+\s?/, "").trim())
    .join(" ")
    .replaceAll("|", "\\|")
    .trim();
}

function code(type: string): string {
  return `\`${type.replace(/readonly /g, "").replace(/\s+/g, " ")}\``.replaceAll("|", "\\|");
}
