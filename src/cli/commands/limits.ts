import { type Command, InvalidArgumentError } from "commander";
import { parseDuration } from "../../core/time.ts";
import { withCommands, withPage, withTarget } from "../declare.ts";
import { CommandFailed } from "../exit.ts";
import { printable } from "../output/paint.ts";
import { type Column, listText, tableText } from "../output/table.ts";
import { relativeText, spanText } from "../output/times.ts";
import { act } from "../run-command.ts";
import type { Fields } from "../target/target.ts";

const PATH = "/ojs/v1/rate-limits";
const LIMIT = '{"key","concurrency","rate","active","waiting","available","next_at","override"?}';

export function register(limits: Command): void {
  limits.description("Limits of keys: how many jobs with the same key run at once, or start in a time.");
  withCommands(limits, { ls: declareList, set: declareSet, reset: declareReset });
}

const columns = (now: number): Column<Fields>[] => [
  { title: "KEY", show: ({ key }) => printable(String(key)), shrinkTo: 12 },
  { title: "AT ONCE", show: ({ concurrency }) => String(concurrency ?? "-"), align: "right" },
  { title: "RATE", show: ({ rate }) => rateText(rate as Fields | null) },
  { title: "IN USE", show: ({ active }) => String(active), align: "right" },
  { title: "WAITS", show: ({ waiting }) => String(waiting), align: "right" },
  { title: "NEXT", show: ({ next_at }) => relativeText(next_at, now), drop: 2 },
  { title: "", show: ({ override }) => (override === undefined ? "" : "set by an operator"), drop: 1 },
];

function rateText(rate: Fields | null): string {
  if (rate === null) return "-";
  const seconds = Number(/^PT(.+)S$/.exec(String(rate.period))?.[1]);
  return `${rate.limit} per ${Number.isNaN(seconds) ? rate.period : spanText(seconds * 1_000)}`;
}

const NO_LIMITS = "No limits.\nA job brings its limit along, or: curfew limits set <key> --concurrency 2";

function declareList(command: Command): void {
  command.description("List limits that have live jobs, or that an operator set.");
  withPage(withTarget(command), {
    examples: [["limits ls", "what is used of each, and how many jobs wait for it"]],
    json: `{"items":[${LIMIT}]}`,
  });
  act(command, async ({ target, output }) => {
    const { items } = await target.get(PATH, { per_page: 200 });
    output.answer({ items }, () => listText(columns(target.now()), items as readonly Fields[], NO_LIMITS));
  });
}

interface SetOptions {
  readonly concurrency?: number | "none";
  readonly rate?: { readonly limit: number; readonly period: string } | "none";
}

function countOrNone(text: string): number | "none" {
  if (text === "none") return text;
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new InvalidArgumentError('Write a whole number from 1, or "none".');
  return Number(text);
}

/** `100/1m` -> 100 starts in a minute. */
function rateOption(text: string): NonNullable<SetOptions["rate"]> {
  if (text === "none") return text;
  const [, limit, period] = /^([1-9]\d{0,6})\/(.+)$/.exec(text) ?? [];
  if (limit === undefined || period === undefined)
    throw new InvalidArgumentError('Write a count and a time, such as 100/1m, or "none".');
  return { limit: Number(limit), period: `PT${parseDuration(period, "--rate") / 1_000}S` };
}

function declareSet(command: Command): void {
  command
    .description("Set the limit of a key, for every process and at once, whatever its jobs say.")
    .argument("<key>", "the key, as limits ls shows it");
  withTarget(command)
    .option("--concurrency <count>", "how many run at once, or none", countOrNone)
    .option("--rate <count/time>", "how many start in a time, such as 100/1m, or none", rateOption);
  withPage(command, {
    examples: [
      ["limits set customer:42 --concurrency 5", "at most five at once"],
      ["limits set stripe --rate 100/1m", "at most 100 starts in a minute"],
    ],
    json: LIMIT,
  });
  act<SetOptions>(command, async ({ target, output }, { concurrency, rate }, [key]) => {
    const change = { ...(concurrency !== undefined && { concurrency }), ...(rate !== undefined && { rate }) };
    if (Object.keys(change).length === 0)
      throw new CommandFailed("usage", "limits set: nothing to change; pass --concurrency or --rate");
    const { rate_limit } = await target.send("PUT", `${PATH}/${encodeURIComponent(key as string)}`, change);
    output.answer(rate_limit, () => tableText(columns(target.now()), [rate_limit as Fields]));
  });
}

function declareReset(command: Command): void {
  command
    .description("Remove what operators set for a key: the limit is as its jobs say again.")
    .argument("<key>", "the key, as limits ls shows it");
  withPage(withTarget(command), {
    examples: [["limits reset customer:42", "back to what the code says"]],
    json: LIMIT,
  });
  act(command, async ({ target, output }, _options, [key]) => {
    const { rate_limit } = await target.send("DELETE", `${PATH}/${encodeURIComponent(key as string)}`);
    output.answer(rate_limit, () => `Limit ${printable(key as string)} is as its jobs say.`);
  });
}
