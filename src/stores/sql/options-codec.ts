import type { JobOptions, SettingSource } from "../../core/job/job.ts";
import { SOURCE_LETTERS, sourceOf } from "./policy-codec.ts";

/**
 * What most jobs with options have, in short: `wait`, `total`, the letters of their two sources, `anchoredAt`, and the three
 * retentions. The text is in every row, and each claim and settle writes it again, so its length is a part of their price. It
 * is the format on disk: add a key, never change one. Everything else keeps its name: servers look for `"redact":` in it.
 */
interface Short {
  readonly w?: number;
  readonly t?: number;
  readonly f?: string;
  readonly a?: number;
  readonly r?: readonly [completed: number, discarded: number, cancelled: number];
}

/** A source that is not said. */
const NONE = "-";

/** Jobs of one call share their options, which never change. */
let last: { readonly options: JobOptions; readonly text: string } | undefined;

export function optionsText(options: JobOptions): string {
  if (last?.options !== options) last = { options, text: writtenOptions(options) };
  return last.text;
}

/** By hand: copies of the object would cost more than its text. */
function writtenOptions(options: JobOptions): string {
  let text = "";
  for (const name of Object.keys(options) as (keyof JobOptions)[]) {
    if (name === "waitFrom" || name === "totalFrom" || options[name] === undefined) continue;
    text += `,${textOf(options, name)}`;
  }
  const { waitFrom, totalFrom } = options;
  if ((waitFrom ?? totalFrom) !== undefined) text += `,"f":"${letterOf(waitFrom)}${letterOf(totalFrom)}"`;
  return `{${text.slice(1)}}`;
}

function textOf(options: JobOptions, name: keyof JobOptions): string {
  if (name === "wait") return `"w":${options.wait}`;
  if (name === "total") return `"t":${options.total}`;
  if (name === "anchoredAt") return `"a":${options.anchoredAt}`;
  if (name === "retention" && options.retention && !("deadLetter" in options.retention)) {
    const { completed, discarded, cancelled } = options.retention;
    return `"r":[${completed},${discarded},${cancelled}]`;
  }
  return `"${name}":${JSON.stringify(options[name])}`;
}

function letterOf(source: SettingSource | undefined): string {
  return source === undefined ? NONE : SOURCE_LETTERS[source];
}

/** Also reads texts from before the short form: they have none of its keys. */
export function parseOptions(text: string): JobOptions {
  const read = JSON.parse(text) as Short & JobOptions;
  const options: Record<string, unknown> = {};
  for (const name of Object.keys(read) as (keyof typeof read)[]) {
    if (name === "w") options.wait = read.w;
    else if (name === "t") options.total = read.t;
    else if (name === "a") options.anchoredAt = read.a;
    else if (name === "r" && read.r)
      options.retention = { completed: read.r[0], discarded: read.r[1], cancelled: read.r[2] };
    else if (name !== "f") options[name] = read[name];
  }
  const [waitFrom, totalFrom] = [sourceOf(read.f?.charAt(0)), sourceOf(read.f?.charAt(1))];
  if (waitFrom) options.waitFrom = waitFrom;
  if (totalFrom) options.totalFrom = totalFrom;
  return options;
}
