/** What the demo prints: one line per event, coloured by what it means, and a summary. */
import { styleText } from "node:util";
import { type Engine, type EngineEvent, LATENESS_BOUNDS, type Middleware } from "curfew";

type Tone = "green" | "yellow" | "red" | "magenta" | "cyan" | "dim" | "bold";

/** Plain where the stream is no terminal or NO_COLOR is set: styleText looks at both. */
const paint = (tone: Tone | readonly Tone[], text: string) =>
  styleText(tone as Tone, text, { stream: process.stdout });

/** One word and one colour per kind of event; what is not listed is not shown. */
const SHOWN: { readonly [name in EngineEvent["name"]]?: readonly [mark: string, tone: Tone, word: string] } =
  {
    "job.completed": ["✓", "green", "completed"],
    "job.failed": ["✗", "yellow", "failed"],
    "job.timeout": ["◷", "yellow", "timed out"],
    "job.total_timeout": ["◷", "yellow", "out of budget"],
    "job.ttl_expired": ["◷", "yellow", "expired"],
    "job.stalled": ["◷", "yellow", "stalled"],
    "job.retrying": ["↻", "cyan", "retrying"],
    "job.discarded": ["✗", "red", "discarded"],
    "job.cancelled": ["■", "magenta", "cancelled"],
    "job.extended": ["+", "cyan", "extended"],
    "job.released": ["←", "cyan", "released"],
    "job.stuck": ["!", "red", "stuck"],
    "worker.blocked": ["!", "red", "blocked"],
  };

const LEGEND: readonly (readonly [mark: string, tone: Tone, text: string])[] = [
  ["✓", "green", "success"],
  ["◷", "yellow", "time is up"],
  ["↻", "cyan", "tried again"],
  ["✗", "red", "given up"],
  ["■", "magenta", "cancelled"],
  ["!", "red", "trouble"],
  ["·", "dim", "what a handler does"],
];

export interface Screen {
  readonly opening: () => void;
  readonly chapter: (title: string) => void;
  readonly event: (event: EngineEvent) => void;
  readonly handler: (type: string, text: string) => void;
  readonly operator: (type: string, text: string) => void;
  /** Says when a handler is entered. */
  readonly middleware: Middleware;
  readonly summary: (engine: Engine) => void;
}

export function createScreen(now: () => number): Screen {
  const startedAt = now();
  let lastAt = 0;
  let chapters = 0;
  const line = (at: number, type: string, mark: string, tone: Tone, word: string, text: string) => {
    lastAt = Math.max(lastAt, at - startedAt);
    const time = `${(lastAt / 1000).toFixed(3).padStart(7)} s`;
    const what = `${paint(tone, `${mark} ${word.padEnd(14)}`)}${text}`;
    console.log(`${paint("dim", time)}  ${type.padEnd(15)}${what}`.trimEnd());
  };
  const handler = (type: string, text: string) =>
    line(now(), type, "·", "dim", "handler", paint("dim", text));
  return {
    opening,
    handler,
    operator: (type, text) => line(now(), type, "→", "bold", "operator", text),
    chapter: (title) => console.log(`\n${paint("bold", `${++chapters}. ${title}`)}`),
    event(event) {
      const [mark, tone, word] = SHOWN[event.name] ?? [];
      if (!mark || !tone || !word || isToldAlready(event)) return;
      line(event.at, "type" in event ? event.type : "worker", mark, tone, word, describe(event));
    },
    middleware: ({ type, attempt }, next) => {
      line(now(), type, "▸", "dim", `attempt ${attempt}`, paint("dim", "starts"));
      return next();
    },
    summary: (engine) => printSummary(engine),
  };
}

function opening(): void {
  console.log(
    `${paint("bold", "curfew")}: background jobs that end on time. Each job below ends in its own way.\n`,
  );
  console.log(LEGEND.map(([mark, tone, text]) => `${paint(tone, mark)} ${text}`).join("   "));
}

/** A timeout is told by its own event; `job.failed`, which follows every failed attempt, would say it twice. */
function isToldAlready(event: EngineEvent): boolean {
  return event.name === "job.failed" && event.error?.kind !== undefined;
}

function describe(event: EngineEvent): string {
  if (event.name === "worker.blocked") {
    const types = event.jobs.map(({ type }) => type).join(", ");
    return `for ${event.gap} ms by ${types}; no timer of this process could fire`;
  }
  if (!("id" in event)) return "";
  const { error } = event;
  switch (event.name) {
    case "job.completed":
      return `after ${event.elapsed} ms${event.late ? paint("yellow", ", late: after its signal") : ""}`;
    case "job.retrying":
      return `in ${Math.max(0, (event.dueAt ?? event.at) - event.at)} ms`;
    case "job.discarded":
      return error?.kind === undefined ? (error?.message ?? "") : "";
    case "job.total_timeout":
      return error?.predicted ? "the next attempt would not fit into it" : (error?.message ?? "");
    case "job.stuck":
      return "fenced off: it may run on, but its slot is free and its writes are void";
    case "job.released":
      return "given back, and the attempt is not spent";
    case "job.extended":
      return "its signal comes later now";
    case "job.cancelled":
      return "whatever it still writes is refused";
    default:
      return `${error?.message ?? ""}${error?.forced ? ", ended by force" : ""}`;
  }
}

function printSummary(engine: Engine): void {
  const { timeouts, lateness, sagas: _sagas, ...counts } = engine.counters();
  const count = (tone: Tone, value: number, word: string) =>
    paint(value > 0 ? tone : "dim", `${value} ${word}`);
  const kinds = new Map<string, number>();
  for (const { kind, count: many } of timeouts) kinds.set(kind, (kinds.get(kind) ?? 0) + many);
  const rows: readonly (readonly [title: string, cells: readonly string[]])[] = [
    [
      "jobs",
      [
        count("bold", counts.enqueued, "enqueued"),
        count("green", counts.completed, `completed (${counts.late} late)`),
        count("red", counts.discarded, "discarded"),
        count("magenta", counts.cancelled, "cancelled"),
      ],
    ],
    [
      "attempts",
      [
        count("bold", counts.started, "started"),
        count("yellow", counts.failed, "failed"),
        count("cyan", counts.retrying, "retried"),
        count("red", counts.stuck, "stuck"),
      ],
    ],
    ["timeouts", [...kinds].map(([kind, many]) => count("yellow", many, kind))],
    ["lateness", [`${lateness.total} fired: ${histogram(lateness.counts)}`, paint("bold", "none early")]],
  ];
  console.log(`\n${paint("bold", "Summary")}`);
  for (const [title, cells] of rows) console.log(`  ${title.padEnd(10)}${cells.join(" · ")}`);
}

function histogram(counts: readonly number[]): string {
  return counts
    .map((count, index) => [LATENESS_BOUNDS[index], count] as const)
    .filter(([, count]) => count > 0)
    .map(([bound, count]) => `${count} ${bound === undefined ? "later" : `within ${bound} ms`}`)
    .join(", ");
}
