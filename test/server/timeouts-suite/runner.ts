import { readdir, readFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { matches, valueAt } from "./paths.ts";

interface Assertions {
  readonly status: number | string;
  readonly body?: Readonly<Record<string, unknown>>;
  readonly body_contains?: readonly string[];
}

interface SuiteStep {
  readonly id: string;
  readonly description?: string;
  readonly delay_ms?: number;
  readonly action: string;
  readonly intent: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body?: unknown;
  readonly raw_body?: string;
  readonly assertions: Assertions;
}

export interface SuiteCase {
  readonly test_id: string;
  readonly name: string;
  readonly steps: readonly SuiteStep[];
}

export interface CaseResult {
  readonly test_id: string;
  readonly name: string;
  /** What did not hold, in the step where the case stopped; none if it passed. */
  readonly failures: readonly string[];
}

interface Reply {
  readonly status: number;
  readonly text: string;
  readonly body: unknown;
}

const STEP_KEYS = new Set(
  "id description delay_ms action intent path headers body raw_body assertions".split(" "),
);
const ASSERTION_KEYS = new Set(["status", "body", "body_contains"]);

/** Reads the cases of a folder. What the runner would not look at is an error, so that nothing passes unseen. */
export async function loadSuite(folder: string): Promise<SuiteCase[]> {
  const files = (await readdir(folder)).filter((name) => name.endsWith(".json")).sort();
  const cases: SuiteCase[] = [];
  for (const file of files) {
    const suiteCase = JSON.parse(await readFile(join(folder, file), "utf8")) as SuiteCase;
    for (const step of suiteCase.steps) {
      const odd = [
        ...Object.keys(step).filter((key) => !STEP_KEYS.has(key)),
        ...Object.keys(step.assertions).filter((key) => !ASSERTION_KEYS.has(key)),
      ];
      if (odd.length > 0) throw new Error(`${file}: ${step.id}: ${odd.join(", ")} is not understood`);
    }
    cases.push(suiteCase);
  }
  return cases;
}

function exchange(url: URL, step: SuiteStep, payload: string | undefined): Promise<Reply> {
  const length = payload === undefined ? {} : { "Content-Length": Buffer.byteLength(payload) };
  const headers = { ...step.headers, ...length };
  return new Promise((resolve, reject) => {
    // A connection each, since a server may close one that was idle during a case's waits.
    const sent = request(url, { method: step.action, headers, agent: false, timeout: 30_000 }, (reply) => {
      let text = "";
      reply.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      reply.on("error", reject).on("end", () => {
        resolve({ status: reply.statusCode as number, text, body: parsed(text) });
      });
    });
    sent.on("timeout", () => sent.destroy(new Error("no answer within 30 s"))).on("error", reject);
    sent.end(payload);
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Names of queues in paths. */
const IN_PATHS = /(?<=[?&]queues?=)[^&]+|(?<=\/queues\/)[^/?]+/g;

/** One case on its way: it knows the replies so far, and by which names its queues go in this run. */
class Run {
  readonly #url: string;
  readonly #suffix: string;
  readonly #queues = new Set<string>();
  readonly #replies = new Map<string, Reply>();
  /** Milliseconds that the steps took longer than their waits. */
  late = 0;

  constructor(url: string, suffix: string, { steps }: SuiteCase) {
    this.#url = url;
    this.#suffix = suffix;
    for (const { body } of steps) this.#findQueues(body);
  }

  /** Cases run side by side on one server, so each has queues of its own. */
  #findQueues(value: unknown): void {
    if (typeof value !== "object" || value === null) return;
    const { queue, queues } = value as { queue?: unknown; queues?: unknown };
    for (const name of [queue, queues].flat()) if (typeof name === "string") this.#queues.add(name);
    for (const inner of Object.values(value)) this.#findQueues(inner);
  }

  async step(step: SuiteStep): Promise<string[]> {
    const from = performance.now();
    try {
      return await this.#take(step);
    } finally {
      this.late += performance.now() - from - (step.delay_ms ?? 0);
    }
  }

  async #take(step: SuiteStep): Promise<string[]> {
    if (step.delay_ms !== undefined) {
      await new Promise((resolve) => setTimeout(resolve, step.delay_ms));
    }
    const body = step.body === undefined ? undefined : JSON.stringify(this.#filled(step.body));
    const path = this.#text(step.path).replaceAll(IN_PATHS, (name) => this.#renamed(name));
    const reply = await exchange(new URL(path, this.#url), step, step.raw_body ?? body);
    this.#replies.set(step.id, reply);
    return this.#check(step, reply);
  }

  #check({ id, action, path, assertions }: SuiteStep, reply: Reply): string[] {
    const failures: string[] = [];
    const fail = (what: string, wanted: unknown, found: unknown) => {
      const head = `${id} ${action} ${path}: ${what} is ${JSON.stringify(found) ?? "nothing"}`;
      failures.push(`${head}, not ${JSON.stringify(wanted)} [${reply.status} ${reply.text.slice(0, 400)}]`);
    };
    const { status, body = {}, body_contains = [] } = assertions;
    if (!matches(status, reply.status)) fail("status", status, reply.status);
    for (const [at, asked] of Object.entries(body)) {
      const wanted = this.#filled(asked);
      const found = valueAt(reply.body, this.#text(at));
      if (!matches(wanted, found)) fail(at, wanted, found);
    }
    for (const part of body_contains) if (!reply.text.includes(part)) fail("body", part, "without it");
    return failures;
  }

  #renamed(name: string): string {
    return this.#queues.has(name) ? `${name}-${this.#suffix}` : name;
  }

  /** A value with its references and queue names put in. */
  #filled(value: unknown): unknown {
    if (typeof value === "string") {
      const [, whole] = /^\{\{([^}]+)\}\}$/.exec(value) ?? [];
      return whole === undefined ? this.#renamed(this.#text(value)) : this.#referred(whole);
    }
    if (Array.isArray(value)) return value.map((entry) => this.#filled(entry));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, this.#filled(inner)]));
  }

  #text(text: string): string {
    return text.replaceAll(/\{\{([^}]+)\}\}/g, (_, reference: string) => String(this.#referred(reference)));
  }

  #referred(reference: string): unknown {
    const [, id, path] = /^steps\.([\w-]+)\.response\.body\.(.+)$/.exec(reference) ?? [];
    const value = id && path && valueAt(this.#replies.get(id)?.body, path);
    if (value === undefined || value === null) throw new Error(`{{${reference}}} refers to nothing`);
    return value;
  }
}

/** A case whose steps were this many milliseconds late says nothing about the server: its waits were others. */
const TOO_LATE = 250;
const MOST_TRIES = 3;

/** A case that failed and was too late is repeated, with other queues. */
async function runCase(suiteCase: SuiteCase, url: string, suffix: string): Promise<CaseResult> {
  const { test_id, name, steps } = suiteCase;
  for (let tries = 1; ; tries++) {
    const run = new Run(url, `${suffix}-${tries}`, suiteCase);
    let failures: string[] = [];
    for (const step of steps) {
      failures = await run.step(step).catch((error: Error) => [`${step.id}: ${error.message}`]);
      if (failures.length > 0) break;
    }
    if (failures.length === 0 || run.late < TOO_LATE || tries === MOST_TRIES)
      return { test_id, name, failures };
    console.log(`${test_id} was ${Math.round(run.late)} ms late and is repeated: ${failures.join("; ")}`);
  }
}

function waitsOf({ steps }: SuiteCase): number {
  return steps.reduce((sum, { delay_ms = 0 }) => sum + delay_ms, 0);
}

/** Runs cases against a server, `concurrency` at once; queues get the suffix, which no other run may have used. */
export async function runSuite(
  cases: readonly SuiteCase[],
  { url, suffix, concurrency }: { url: string; suffix: string; concurrency: number },
): Promise<CaseResult[]> {
  const results: CaseResult[] = [];
  // The longest go first, so that none of them is left for the end.
  const left = [...cases.entries()].sort(([, a], [, b]) => waitsOf(b) - waitsOf(a)).values();
  const lanes = Array.from({ length: concurrency }, async () => {
    for (const [index, suiteCase] of left)
      results[index] = await runCase(suiteCase, url, `${suffix}${index.toString(36)}`);
  });
  await Promise.all(lanes);
  return results;
}
