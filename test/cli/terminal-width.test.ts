import { stripVTControlCharacters } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { cutTo, displayWidth } from "../../src/cli/output/width.ts";
import { wrapText } from "../../src/cli/output/wrap.ts";
import { run } from "../../src/cli/program.ts";
import { chain, defineJob, type Engine, openEngine, processor, step, unchecked } from "../../src/index.ts";
import { createServer, type Listening, listen } from "../../src/server/index.ts";
import { diary } from "../engine/saga-stage.ts";

const LONG = "a-name-that-is-far-longer-than-any-terminal-is-wide-and-goes-on-and-on."
  .repeat(3)
  .slice(0, 120);
/** Colours, a new line, a bell, text that turns around, wide and joined characters, half a character. */
const HOSTILE = `\u001b[31mred\u001b[2J\nnext\u0007 \u202eturned\u2028 日本語の長い名前 👩‍👩‍👧‍👦 ❤️ é\u0301 \ud800 ${"wörter ".repeat(20)}${"無空白".repeat(40)}`;

const slow = defineJob({ type: `slow.${LONG}`, queue: LONG, payload: unchecked<object>() });
const bad = defineJob({
  type: "bad",
  queue: "payments",
  payload: unchecked<object>(),
  timeouts: { attempt: "30s" },
  retry: { attempts: 1, onExhausted: "dead-letter" },
});
const limited = defineJob({ type: "limited", limit: { key: LONG, concurrency: 1 } });
const { saga } = diary((context) => {
  context.request("rung", { after: "1h" }, { text: "late" });
});

let engine: Engine;
let listening: Listening;
const ids = { waiting: "", dead: "", held: "", workflow: "" };

beforeAll(async () => {
  engine = await openEngine({ store: "memory:", logger: silent });
  const worker = engine.work({
    processors: [
      processor(bad, () => {
        throw new Error(HOSTILE);
      }),
    ],
  });
  const dead = await engine.enqueue(bad, { [HOSTILE]: HOSTILE });
  await Promise.allSettled([dead.result()]);
  await worker.close();
  ids.dead = dead.id;
  ids.waiting = (await engine.enqueue(slow, { note: HOSTILE })).id;
  await engine.enqueue(limited);
  ids.held = (await engine.enqueue(limited)).id;
  await engine.crons.put("nightly", {
    cron: "0 3 1-7,15-21 */2 1-5",
    zone: "America/Argentina/Buenos_Aires",
    job: slow,
    payload: {},
  });
  ids.workflow = (
    await engine.workflows.start(chain([step(slow, {}), step(slow, {})]), { name: HOSTILE.slice(0, 200) })
  ).id;
  const host = engine.host([saga]);
  await engine.send(saga, "begun", { id: LONG, text: HOSTILE });
  await vi.waitUntil(() => engine.saga(saga, LONG).load(), { timeout: 60_000 });
  await host.close();
  await engine.timeouts.insert({ id: LONG, destination: LONG, dueAt: { after: "2h" }, payload: {} });
  await engine.queues.pause(LONG, { actor: LONG.slice(0, 100), reason: HOSTILE });
  await engine.maintenance.begin({ reason: HOSTILE });
  await engine.limits.put(LONG, { concurrency: 2 });
  engine.work({ processors: [processor(limited, () => new Promise(() => {}))] });
  listening = await listen(createServer(engine), { port: 0 });
});
afterAll(async () => {
  await listening.close();
  await engine.close({ drain: "1ms" });
});
afterEach(() => vi.restoreAllMocks());

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Runs a command in this process as if its output were a terminal of this width, and gives the lines. */
async function linesAt(width: number, words: readonly string[]): Promise<string[]> {
  let text = "";
  vi.spyOn(process.stdout, "write").mockImplementation((chunk) => {
    text += chunk;
    return true;
  });
  const { isTTY, columns } = process.stdout;
  Object.assign(process.stdout, { isTTY: true, columns: width });
  const before = { signal: process.listeners("SIGINT"), error: process.stdout.listeners("error") };
  try {
    const code = await run(["node", "curfew", ...words, "--url", listening.url]);
    expect(code, words.join(" ")).toBeLessThan(2);
  } finally {
    Object.assign(process.stdout, { isTTY, columns });
    for (const each of process.listeners("SIGINT"))
      if (!before.signal.includes(each)) process.off("SIGINT", each);
    for (const each of process.stdout.listeners("error"))
      if (!before.error.includes(each)) process.stdout.off("error", each as () => void);
    vi.restoreAllMocks();
  }
  expect(text, words.join(" ")).not.toBe("");
  return text.replace(/\n$/, "").split("\n");
}

const COMMANDS: readonly (() => readonly string[])[] = [
  () => ["ls"],
  () => ["ls", "--state", "held"],
  () => ["show", ids.waiting],
  () => ["show", ids.dead],
  () => ["why", ids.waiting],
  () => ["why", ids.dead],
  () => ["why", ids.held],
  () => ["explain", ids.waiting],
  () => ["explain", ids.dead],
  () => ["queues"],
  () => ["dead"],
  () => ["cron"],
  () => ["cron", "show", "nightly"],
  () => ["cron", "next", "nightly"],
  () => ["workflows"],
  () => ["workflows", "show", ids.workflow],
  () => ["sagas"],
  () => ["sagas", "show", "diary", LONG],
  () => ["timeouts"],
  () => ["workers"],
  () => ["top", "--once"],
  () => ["stats"],
  () => ["stats", "--since", "1h"],
  () => ["advise"],
  () => ["limits"],
  () => ["audit"],
  () => ["maintenance"],
  () => ["doctor"],
];

/** A line to copy into a shell stays whole: the terminal wraps it, and a new line in it would end the command. */
const isCommand = (line: string) => /^ +curfew /.test(line);

describe.each([60, 80, 120])("on a terminal with %i columns", (width) => {
  it("every line of every table and list fits, and nothing in it controls the terminal", async () => {
    const wide: string[] = [];
    for (const words of COMMANDS) {
      for (const line of await linesAt(width, words())) {
        const plain = stripVTControlCharacters(line);
        if (!isCommand(plain) && displayWidth(plain) > width) wide.push(`${words().join(" ")}: ${plain}`);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters on purpose.
        expect(plain, words().join(" ")).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2028]/);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are the only codes.
        expect(line.replace(/\u001b\[[0-9;]*m/g, ""), words().join(" ")).toBe(plain);
      }
    }
    expect(wide).toEqual([]);
  });
});

describe("the width of a text", () => {
  it.each([
    ["abc", 3],
    ["\u001b[31mabc\u001b[39m", 3],
    ["日本", 4],
    ["e\u0301", 1],
    ["❤️", 2],
    ["🎉", 2],
    ["한국", 4],
    ["ﬁ", 1],
  ])("%j takes %i columns", (text, width) => {
    expect(displayWidth(text)).toBe(width);
  });

  it("is kept by a cut, which never ends in half a character", () => {
    expect(cutTo("日本語", 4)).toBe("日…");
    expect(cutTo("abcdef", 4)).toBe("abc…");
    expect(cutTo("abcd", 4)).toBe("abcd");
    expect(cutTo("\u001b[31mabcdef\u001b[39m", 4)).toBe("abc…");
  });

  it("is kept by a wrap, also in a word that is longer than a line", () => {
    const lines = wrapText(`one two ${"x".repeat(25)} 日本語日本語日本語 end`, "", "  ", 12).split("\n");
    for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(12);
    expect(
      lines
        .map((line) => line.trim())
        .join("")
        .replaceAll(" ", ""),
    ).toBe(`onetwo${"x".repeat(25)}日本語日本語日本語end`);
  });
});
