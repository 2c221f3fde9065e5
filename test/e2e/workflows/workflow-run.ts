import { type ChildProcess, fork } from "node:child_process";
import { readFile } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";
import { seededRandom } from "../../../src/core/random.ts";
import {
  batch,
  chain,
  type Engine,
  group,
  type StepNode,
  step,
  type WorkflowHandle,
  type WorkflowNode,
  type WorkflowView,
} from "../../../src/index.ts";
import { withEntriesFile } from "../support/entries-file.ts";
import { killChild } from "../support/kill-child.ts";
import { program } from "../support/program.ts";
import { crashStep, type StepOutcome } from "./jobs.ts";

export interface RunOptions {
  readonly store: string;
  readonly workflows: number;
  readonly workers: number;
  readonly seed: number;
}

export interface RunReport {
  readonly completed: number;
  readonly failed: number;
  readonly kills: number;
  readonly entries: number;
  readonly seconds: number;
  readonly violations: readonly string[];
}

const STEPS = 10;
const STARTED_WITHIN = 10_000;
const SETTLE_WITHIN = 600_000;

type Shape = "chain" | "fan" | "batch";

interface Begun {
  readonly shape: Shape;
  /** The step that fails for good; undefined for none. */
  readonly failing: number | undefined;
  readonly handle: WorkflowHandle<unknown>;
}

/**
 * Workflows of ten steps on a real store, worked on by processes that are killed with SIGKILL at random moments. Each
 * must end as its steps say, each step must have run after those before it, and have been given their accepted results.
 */
export function workflowRun(options: RunOptions): Promise<RunReport> {
  const { store } = options;
  return withEntriesFile("workflows", { store }, (engine, file) => new WorkflowRun(options, engine, file));
}

class WorkflowRun {
  readonly #options: RunOptions;
  readonly #engine: Engine;
  readonly #entriesFile: string;
  readonly #random: () => number;
  readonly #children: ChildProcess[] = [];
  readonly #begun: Begun[] = [];
  #kills = 0;

  constructor(options: RunOptions, engine: Engine, entriesFile: string) {
    this.#options = options;
    this.#engine = engine;
    this.#entriesFile = entriesFile;
    this.#random = seededRandom(options.seed);
  }

  async run(): Promise<RunReport> {
    const startedAt = performance.now();
    for (let index = 0; index < this.#options.workers; index++) this.#children.push(this.#spawn());
    let isOver = false;
    const killing = this.#kill(() => isOver);
    const violations: string[] = [];
    for (let nth = 0; nth < this.#options.workflows; nth++) {
      this.#begun.push(await this.#start(nth));
      // A real pause: on a fast machine all would be over before enough processes were killed.
      await wait(STARTED_WITHIN / this.#options.workflows);
    }
    const views = await this.#settled(violations);
    isOver = true;
    await killing;
    const entries = await this.#readEntries();
    for (const [nth, view] of views.entries())
      if (view) violations.push(...(await this.#judge(nth, view, entries)));
    return {
      completed: views.filter((view) => view?.state === "completed").length,
      failed: views.filter((view) => view?.state === "failed").length,
      kills: this.#kills,
      entries: entries.length,
      seconds: Math.round((performance.now() - startedAt) / 1_000),
      violations,
    };
  }

  #spawn(): ChildProcess {
    const script = program(new URL("./worker-process.ts", import.meta.url));
    return fork(script, [this.#options.store, this.#entriesFile], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
  }

  async #start(nth: number): Promise<Begun> {
    const shape = (["chain", "fan", "batch"] as const)[nth % 3] as Shape;
    const failing = this.#random() < 0.1 ? Math.floor(this.#random() * STEPS) : undefined;
    const node = nodeOf(shape, (index) =>
      step(crashStep, {
        workflow: nth,
        step: index,
        takes: Math.floor(this.#random() * 60),
        fails: index === failing,
      }),
    );
    return { shape, failing, handle: await this.#engine.workflows.start(node) };
  }

  async #kill(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      await wait(800 + this.#random() * 1_400);
      const index = Math.floor(this.#random() * this.#children.length);
      await killChild(this.#children[index] as ChildProcess);
      this.#kills += 1;
      this.#children[index] = this.#spawn();
    }
  }

  async #settled(violations: string[]): Promise<(WorkflowView | null)[]> {
    const givesUpAt = performance.now() + SETTLE_WITHIN;
    for (;;) {
      const running = await this.#running();
      const { available, active, retryable, scheduled } = await this.#engine.queues.depth();
      // Callbacks of batches go on when their workflow has ended.
      const isOver = running === 0 && available + active + retryable + scheduled === 0;
      if (!isOver && performance.now() > givesUpAt)
        violations.push(`${running} workflows did not end, and ${active} jobs are active`);
      if (isOver || performance.now() > givesUpAt)
        return Promise.all(this.#begun.map(({ handle }) => handle.view()));
      await wait(250);
    }
  }

  async #running(): Promise<number> {
    let count = 0;
    for (let after: string | undefined; ; ) {
      const page = await this.#engine.workflows.list({ limit: 1_000, ...(after && { after }) });
      count += page.filter(({ state }) => state === "running").length;
      after = page.at(-1)?.id;
      if (page.length < 1_000) return count;
    }
  }

  async #readEntries(): Promise<Entry[]> {
    const lines = (await readFile(this.#entriesFile, "utf8")).split("\n").filter(Boolean);
    return lines.map((line) => {
      const [workflow, nth, entry = "", after = "-"] = line.split(" ");
      return {
        workflow: Number(workflow),
        step: Number(nth),
        entry,
        after: after === "-" ? [] : after.split(","),
      };
    });
  }

  async #judge(nth: number, view: WorkflowView, entries: readonly Entry[]): Promise<string[]> {
    const { shape, failing, handle } = this.#begun[nth] as Begun;
    const own = entries.filter(({ workflow }) => workflow === nth);
    const found: string[] = [];
    const isCallback = shape === "batch" && failing !== undefined && failing >= 8;
    const expected = failing === undefined || isCallback ? "completed" : "failed";
    if (view.state !== expected) found.push(`${nth} (${shape}) is ${view.state}, not ${expected}`);
    const ran = new Set(own.map(({ step: index }) => index));
    for (let index = 0; index < STEPS; index++) {
      const shall = failing === undefined || !comesAfter(shape, index, failing);
      if (ran.has(index) !== shall)
        found.push(`${nth} (${shape}): step ${index} ${shall ? "never ran" : "ran after a failure"}`);
    }
    found.push(...checkOrder(nth, shape, own));
    if (expected === "completed") {
      const result = (await handle.result({ within: "60s" })) as StepOutcome | StepOutcome[];
      const outcomes = Array.isArray(result) ? result : [result];
      if (!outcomes.every(({ entry }) => own.some((one) => one.entry === entry)))
        found.push(`${nth} (${shape}): its result comes from an attempt nobody entered`);
    }
    return found;
  }

  async end(): Promise<void> {
    await Promise.all(this.#children.map(killChild));
  }
}

interface Entry {
  readonly workflow: number;
  readonly step: number;
  readonly entry: string;
  readonly after: readonly string[];
}

/** Ten steps in a row; one, eight side by side, one; or a chain of three and a batch of five with callbacks. */
function nodeOf(shape: Shape, make: (index: number) => StepNode): WorkflowNode {
  const steps = Array.from({ length: STEPS }, (_, index) => make(index)) as [StepNode, ...StepNode[]];
  const between = (from: number, to: number) => steps.slice(from, to) as [StepNode, ...StepNode[]];
  if (shape === "chain") return chain(steps);
  if (shape === "fan") return chain([...between(0, 1), group(between(1, 9)), ...between(9, 10)]);
  const [onSuccess, onComplete] = steps.slice(8) as [StepNode, StepNode];
  return chain([...between(0, 3), batch(between(3, 8), { onSuccess, onComplete })]);
}

/** Which steps must have ended before this one. */
function beforeOf(shape: Shape, index: number): number[] {
  if (index === 0) return [];
  if (shape === "chain" || (shape === "batch" && index < 3)) return [index - 1];
  if (shape === "fan") return index === 9 ? [1, 2, 3, 4, 5, 6, 7, 8] : [0];
  return index < 8 ? [2] : [3, 4, 5, 6, 7];
}

/** Whether a step never runs because of the one that fails. A failed batch still has its `onComplete`. */
function comesAfter(shape: Shape, index: number, failing: number): boolean {
  if (shape === "batch" && index === 9 && failing >= 3) return false;
  return beforeOf(shape, index).some((one) => one === failing || comesAfter(shape, one, failing));
}

/** A step was given what the accepted attempts of those before it returned, the same at each of its own attempts. */
function checkOrder(nth: number, shape: Shape, own: readonly Entry[]): string[] {
  return own.flatMap(({ step: index, after }, at) => {
    const earlier = own.slice(0, at);
    const shall = beforeOf(shape, index);
    const given = after.map((entry) => earlier.find((one) => one.entry === entry)?.step);
    const known = given.filter((one) => one !== undefined);
    const first = own.find((one) => one.step === index) as Entry;
    const isSame = first.after.join() === after.join();
    const isRight = known.length === after.length && known.every((one) => shall.includes(one));
    return isSame && isRight ? [] : [`${nth} (${shape}): step ${index} was given ${given}, not ${shall}`];
  });
}
