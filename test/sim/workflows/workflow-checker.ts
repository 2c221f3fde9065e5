import { isDeepStrictEqual } from "node:util";
import type { NewJob } from "../../../src/core/job/enqueue/envelope.ts";
import type { JobRow } from "../../../src/core/job/job.ts";
import { isTerminal } from "../../../src/core/job/lifecycle.ts";
import type { Json } from "../../../src/core/schema.ts";
import type { WorkflowRecord } from "../../../src/core/workflow/workflow-record.ts";
import type { Outcome, Store, Unit } from "../../../src/ports/store.ts";
import type { Machine } from "../machine.ts";
import { short } from "../trace.ts";
import { WorldChecker } from "../world-checker.ts";
import {
  callbacksIn,
  handedOnBy,
  LIMITS,
  type Outcomes,
  resultIn,
  type Script,
  type Spec,
  type StepSpec,
  stepsIn,
  succeeded,
} from "./sim-workflow.ts";

/** A workflow that somebody tried to start. */
export interface Started {
  readonly id: string;
  readonly spec: Spec;
  readonly hasTimeout: boolean;
  isAcknowledged: boolean;
  /** Somebody tried to cancel it; `done` once that was confirmed. */
  cancelled: "no" | "tried" | "done";
  record: WorkflowRecord | undefined;
}

/** Where a step stands: what must have ended before it, and what it must be given. */
interface Position {
  readonly workflow: Started;
  readonly before: Spec | undefined;
  readonly callback: "onSuccess" | "onFailure" | "onComplete" | undefined;
}

type End = "completed" | "cancelled" | "discarded";

/** Knows every workflow that was drawn, and looks at every entry into a handler and every commit that ends a job. */
export class WorkflowChecker extends WorldChecker {
  readonly workflows = new Map<string, Started>();
  /** The jobs of steps, by the numbers of those. */
  readonly jobs = new Map<number, string>();
  readonly ends = new Map<number, End>();
  /** Steps that somebody retried by hand: from then on they are jobs of their own. */
  readonly retried = new Set<string>();
  readonly #positions = new Map<number, Position>();
  readonly #entries = new Map<number, number>();
  readonly #told = new Map<string, string>();
  entered = 0;

  add(id: string, spec: Spec, hasTimeout: boolean): Started {
    const workflow: Started = {
      id,
      spec,
      hasTimeout,
      isAcknowledged: false,
      cancelled: "no",
      record: undefined,
    };
    this.workflows.set(id, workflow);
    this.#place(workflow, spec, undefined);
    return workflow;
  }

  #place(workflow: Started, spec: Spec, before: Spec | undefined): void {
    if (spec.kind === "step") {
      this.#positions.set(spec.n, { workflow, before, callback: undefined });
      return;
    }
    let previous = before;
    for (const [nth, node] of spec.nodes.entries()) {
      const after = spec.kind === "graph" ? (spec.after[nth] ?? []) : [];
      const parents = after.map((place) => spec.nodes[place] as Spec);
      this.#place(workflow, node, parents.length === 0 ? previous : { kind: "group", nodes: parents });
      if (spec.kind === "chain") previous = node;
    }
    if (spec.kind !== "batch") return;
    for (const [name, callback] of Object.entries(spec.callbacks) as ["onSuccess", StepSpec][])
      this.#positions.set(callback.n, { workflow, before: spec, callback: name });
  }

  isCallback(n: number): boolean {
    return this.#positions.get(n)?.callback !== undefined;
  }

  /** A handler is entered; answers how often this step was before. */
  enters(by: Machine, job: string, { n }: Script, parentResults: readonly Json[]): number {
    const times = this.#entries.get(n) ?? 0;
    this.#entries.set(n, times + 1);
    this.entered += 1;
    this.trace.add(by.name, `enters ${n} (${short(job)}), time ${times + 1}`);
    if (this.retried.has(job)) return times;
    const { before, callback } = this.#positions.get(n) as Position;
    if (this.jobs.get(n) !== job) this.report("a step is one job", `${n} is ${this.jobs.get(n)}, not ${job}`);
    const expected = before ? handedOnBy(before, this.ends) : [];
    if (!isDeepStrictEqual(parentResults, expected))
      this.report("results are handed on", `${n} got ${JSON.stringify(parentResults)}`);
    if (!before) return times;
    const missing = stepsIn(before).filter((one) => !this.ends.has(one.n));
    if (missing.length > 0) this.report("order is kept", `${n} runs before ${missing.map((one) => one.n)}`);
    const isGood = succeeded(before, this.ends);
    const isRight = callback === "onComplete" || isGood === (callback !== "onFailure");
    if (!isRight) this.report("nothing runs after a failure", `${n}${callback ? ` (${callback})` : ""}`);
    return times;
  }

  told(name: string, workflow: string): void {
    const before = this.#told.get(workflow);
    if (before !== undefined) this.report("an end is told once", `${workflow}: ${before}, then ${name}`);
    this.#told.set(workflow, name);
  }

  /** A store that tells the checker of everything that is stored or ends. */
  watch(store: Store): Store {
    return {
      ...store,
      jobs: {
        ...store.jobs,
        enqueue: (jobs, options) => {
          for (const job of jobs) this.#stored(job);
          return store.jobs.enqueue(jobs, options);
        },
      },
      commit: async (units, options) => {
        const answers: Outcome[] = [];
        // One at a time, as units are independent: so each is seen with what was there before it.
        for (const unit of units) {
          const id = unit.job?.id;
          const [before] = id === undefined ? [] : await store.jobs.load([id]);
          const [answer] = await store.commit([unit], options);
          answers.push(answer as Outcome);
          if (answer?.ok) this.#committed(unit, before ?? undefined);
        }
        for (const { key, ...limit } of LIMITS)
          if ("concurrency" in limit) await this.#lookBehind(store, key, limit);
        return answers;
      },
    };
  }

  /** Never are more let through than there are places. */
  async #lookBehind(
    store: Store,
    limitKey: string,
    limit: { concurrency: number; strict?: true },
  ): Promise<void> {
    const { available, active, retryable } = await store.inspect.limitKey(limitKey);
    const held = available + active + (limit.strict ? retryable : 0);
    if (held > limit.concurrency)
      this.report(
        "limits are kept",
        `${held} steps hold places of "${limitKey}", which has ${limit.concurrency}`,
      );
    if (held === limit.concurrency) this.trace.add("store", `"${limitKey}" is full`);
  }

  #stored(job: NewJob): void {
    const script = JSON.parse(job.payload) as Script | null;
    if (!script) return;
    const known = this.jobs.get(script.n);
    if (known !== undefined && known !== job.id)
      this.report("a step is one job", `${script.n} is stored as ${known} and as ${job.id}`);
    this.jobs.set(script.n, job.id);
  }

  #committed(unit: Unit, before: JobRow | undefined): void {
    for (const effect of unit.effects ?? []) {
      if ("enqueue" in effect) this.#stored(effect.enqueue);
      if ("put" in effect && effect.put[0] === "workflow")
        this.#written(effect.put[1], effect.body as unknown as WorkflowRecord);
      if ("delete" in effect && effect.delete[0] === "workflow") this.#forgotten(effect.delete[1]);
    }
    const state = unit.job?.image?.state;
    if (!before || state === undefined || !isTerminal(state) || isTerminal(before.state)) return;
    const script = JSON.parse(before.payload) as Script | null;
    if (!script || this.retried.has(before.id)) return;
    this.trace.add("store", `${script.n} is ${state}`);
    if (this.ends.has(script.n))
      this.report("a step ends once", `${script.n} was ${this.ends.get(script.n)} and is ${state}`);
    this.ends.set(script.n, state);
  }

  #written(id: string, record: WorkflowRecord): void {
    const workflow = this.workflows.get(id);
    if (!workflow) return;
    const before = workflow.record;
    if (before && before.state !== "running" && before.state !== record.state)
      this.report("a state stands", `${id} was ${before.state} and is ${record.state}`);
    workflow.record = record;
    if (record.state !== "running" && before?.state !== record.state)
      this.trace.add("store", `${short(id)} has ${record.state}`);
  }

  #forgotten(id: string): void {
    const workflow = this.workflows.get(id);
    if (workflow) workflow.record = undefined;
    this.trace.add("store", `${short(id)} is forgotten`);
  }

  /** What is not at its rest yet. */
  unsettled(): string[] {
    return [...this.workflows.values()].flatMap(({ id, record }) => {
      if (!record || record.phase === "kept") return [];
      return [`workflow ${id} is ${record.state}, ${record.phase}`];
    });
  }

  /** Looks at a workflow that is at its rest. */
  check(workflow: Started, result: Json | undefined): void {
    const { id, spec, record, isAcknowledged, cancelled, hasTimeout } = workflow;
    const isThere = record && record.phase === "kept";
    if (isAcknowledged && !isThere) this.report("what was started is there", id);
    if (!isThere) return;
    const all = [...stepsIn(spec), ...callbacksIn(spec)];
    const lost = stepsIn(spec).filter(({ n }) => !this.ends.has(n));
    if (lost.length > 0) this.report("no step is lost", `${id}: ${lost.map(({ n }) => n)} never ended`);
    if (cancelled === "done" && record.state !== "cancelled") this.report("a cancel holds", id);
    if (cancelled === "no" && record.state === "cancelled") this.report("nothing cancels itself", id);
    this.#checkCounts(workflow, record);
    if (record.state === "cancelled") {
      const live = all.filter(({ n }) => this.jobs.has(n) && !this.ends.has(n));
      if (live.length > 0) this.report("a cancel ends everything", `${id}: ${live.map(({ n }) => n)}`);
      return;
    }
    const isGood = succeeded(spec, this.ends);
    if ((record.state === "completed") !== isGood)
      this.report("the end state is right", `${id} has ${record.state}`);
    if (isGood && !isDeepStrictEqual(result, resultIn(spec, this.ends)))
      this.report("the result is right", `${id}: ${JSON.stringify(result)}`);
    this.#checkNode(spec, hasTimeout, true);
  }

  #checkCounts({ id, spec }: Started, { counts, total }: WorkflowRecord): void {
    const count = (end: End) => stepsIn(spec).filter(({ n }) => this.ends.get(n) === end).length;
    const expected = {
      completed: count("completed"),
      discarded: count("discarded"),
      cancelled: count("cancelled"),
    };
    if (total !== stepsIn(spec).length || !isDeepStrictEqual(counts, expected))
      this.report("steps are counted", `${id}: ${JSON.stringify(counts)}, not ${JSON.stringify(expected)}`);
  }

  /** What comes after a failure in a chain or graph never ran; callbacks of a batch that began ran as they should. */
  #checkNode(spec: Spec, hasTimeout: boolean, began: boolean): void {
    if (spec.kind === "step") {
      if (!began && this.ends.get(spec.n) !== "cancelled")
        this.report("a failure halts its chain", `${spec.n} is ${this.ends.get(spec.n)}`);
      return;
    }
    let isReached = began;
    for (const [nth, node] of spec.nodes.entries()) {
      const parents = spec.kind === "graph" ? (spec.after[nth] ?? []) : [];
      const isNext = parents.every((place) => succeeded(spec.nodes[place] as Spec, this.ends));
      this.#checkNode(node, hasTimeout, isReached && isNext);
      if (spec.kind === "chain") isReached &&= succeeded(node, this.ends as Outcomes);
    }
    if (spec.kind === "batch") this.#checkCallbacks(spec, hasTimeout, began);
  }

  #checkCallbacks(spec: Extract<Spec, { kind: "batch" }>, hasTimeout: boolean, began: boolean): void {
    const isGood = succeeded(spec, this.ends);
    for (const [name, { n }] of Object.entries(spec.callbacks) as [string, StepSpec][]) {
      const isCalled = began && (name === "onComplete" || isGood === (name === "onSuccess"));
      const wasCalled = (this.#entries.get(n) ?? 0) > 0;
      const wasCancelled = this.ends.get(n) === "cancelled";
      if (!isCalled && wasCalled) this.report("callbacks are called as told", `${n} (${name}) was called`);
      // An operator may have cancelled it, and a workflow whose time is up halts what has not begun.
      if (isCalled && !wasCalled && !wasCancelled)
        this.report("callbacks are called as told", `${n} (${name}) was not called`);
      if (isCalled && wasCancelled && !hasTimeout && !this.cancelledByHand.has(n))
        this.report("callbacks are called as told", `${n} (${name}) was cancelled`);
    }
  }

  /** Steps that an operator tried to cancel. */
  readonly cancelledByHand = new Set<number>();
}
