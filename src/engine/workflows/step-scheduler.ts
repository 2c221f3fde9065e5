import { decide } from "../../core/job/decide/decide.ts";
import { isStepReady } from "../../core/job/decide/decision.ts";
import type { EventOf } from "../../core/job/decide/job-events.ts";
import { pathsWithin } from "../../core/job/documents/redaction.ts";
import type { JobId, JobRow, JsonText } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import { type Ends, handedOn, isCompleted } from "../../core/workflow/outcome.ts";
import {
  finalsOf,
  type Plan,
  type PlanNode,
  type PlanPosition,
  positionOf,
} from "../../core/workflow/plan.ts";
import { commitJobs } from "../commit/commit.ts";
import type { Decided, DecidedJob } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { runLimited } from "../runtime/run-limited.ts";
import { halt, haltingDecision } from "./cancel-steps.ts";
import { closeWorkflow } from "./close-workflow.ts";
import { loadPlan, rowsOf, type StoredWorkflow, WORKFLOWS } from "./workflow-records.ts";
import { AT_ONCE, WorkflowRuns } from "./workflow-runs.ts";

/** Steps that are decided together: the first, and the most. Each may get results of the size of a document. */
const FIRST_ROWS = 16;
const MOST_ROWS = 256;
/** Characters of results up to which the next steps may be more. */
const SMALL_RESULTS = 256_000;

type NextPosition = Extract<PlanPosition, { before: unknown }>;

/**
 * Decides on workflow steps whose dependencies have all ended. If they succeeded, the step gets their results and
 * becomes available; otherwise the rest of its chain is cancelled. Reads only the jobs and writes under their
 * revisions, so any engine may do it, twice or after a crash. A step that changed is not retried here: the sweep finds
 * it again.
 */
export class StepScheduler {
  readonly #context: EngineContext;
  readonly #runs: WorkflowRuns;

  constructor(context: EngineContext) {
    this.#context = context;
    this.#runs = new WorkflowRuns(context);
  }

  async decide(rows: readonly JobRow[]): Promise<void> {
    const woken = rows.filter((row) => isStepReady(row) && !this.#runs.has(row.id));
    for (let [from, count] = [0, FIRST_ROWS]; from < woken.length; ) {
      const rows = woken.slice(from, from + count);
      from += count;
      const { ready, slow, size } = await this.#sort(rows);
      await commitJobs(this.#context, ready);
      await runLimited(slow, AT_ONCE, (row) => this.#decideSlow(row));
      count = size < SMALL_RESULTS ? Math.min(count * 4, MOST_ROWS) : 1;
    }
  }

  /** Resolves when no decision runs outside the sweep. */
  flushed(): Promise<void> {
    return this.#runs.flushed();
  }

  /** A step that names its dependencies needs no plan if they all succeeded. */
  async #sort(rows: readonly JobRow[]): Promise<Sorted> {
    const { ends, size } = await this.#ends(rows.flatMap((row) => row.options?.step?.waitsFor?.after ?? []));
    const isCut = size > this.#context.documentLimit;
    // The results of some are missing. Alone, each is decided on its own results.
    if (isCut && rows.length > 1) return this.#sortEach(rows, size);
    const ready: DecidedJob[] = [];
    const slow: JobRow[] = [];
    for (const row of rows) {
      const after = row.options?.step?.waitsFor?.after;
      const isGood = after?.every((id) => ends.get(id)?.state === "completed") ?? false;
      if (after && isGood && !this.#isOver(row))
        ready.push(this.#unblock(row, handedTo(after, ends, isCut, size)));
      else slow.push(row);
    }
    return { ready, slow, size };
  }

  async #sortEach(rows: readonly JobRow[], size: number): Promise<Sorted> {
    const sorted: { ready: DecidedJob[]; slow: JobRow[] } = { ready: [], slow: [] };
    for (const row of rows) {
      const { ready, slow } = await this.#sort([row]);
      sorted.ready.push(...ready);
      sorted.slow.push(...slow);
    }
    return { ...sorted, size };
  }

  #isOver(row: JobRow): boolean {
    const endsAt = row.options?.step?.waitsFor?.endsAt;
    return endsAt !== undefined && this.#context.clock.now() >= endsAt;
  }

  #unblock(row: JobRow, handed: Handed): DecidedJob {
    const { clock, random, documentLimit } = this.#context;
    const now = clock.now();
    const event = { type: "unblock" as const, limit: documentLimit, ...handed };
    const decision = decide(row, event, now, random);
    return this.#job(row, decision as Decided, now);
  }

  #job(row: JobRow, decision: Decided, at: Instant): DecidedJob {
    const { role } = row.options?.step?.waitsFor ?? {};
    // The batch of a callback is over once the callback may run: its outcome changes nothing.
    const isReleased = role === "callback" && decision.image.finishedAt === null;
    const woken = isReleased ? (row.options?.step?.wakes ?? []) : [];
    const effects = woken.map((countdown) => ({ countdown }));
    // Now its limit may admit it.
    if (row.limitKey !== null && decision.image.finishedAt === null) effects.push({ countdown: row.id });
    return { row, decision, at, by: "outsider", effects };
  }

  async #decideSlow(row: JobRow): Promise<void> {
    const { store, clock, wakeSweepAt } = this.#context;
    const stored = row.workflow === null ? null : await WORKFLOWS.load(store, row.workflow);
    await this.#runs.run(row.id, stored?.body.total ?? 0, () =>
      this.#decide(row, stored).finally(() => wakeSweepAt(clock.now())),
    );
  }

  async #decide(row: JobRow, stored: StoredWorkflow | null): Promise<void> {
    const plan = row.workflow === null ? null : await loadPlan(this.#context.store, row.workflow);
    // Steps of a cancelled or incomplete workflow must not run.
    if (!plan || stored?.body.state !== "running") return this.#end(row);
    if (plan.end === row.id) return closeWorkflow(this.#context, row, plan);
    if (plan.start === row.id) return this.#end(row);
    const position = positionOf(plan.root, row.id);
    if (!position) return this.#decideFirst(row, plan);
    if ("callback" in position) {
      const { ends, size } = await this.#ends(finalsOf(position.batch));
      const isCalled =
        position.callback === "onComplete" ||
        isCompleted(position.batch, ends) === (position.callback === "onSuccess");
      if (!isCalled) return this.#end(row);
      await commitJobs(this.#context, [this.#unblock(row, this.#handed(position.batch, ends, size))]);
      return;
    }
    await this.#decideNext(row, stored, position);
  }

  /** Decides on a first step of a workflow that was stored in pieces. */
  async #decideFirst(row: JobRow, plan: Plan): Promise<void> {
    if (this.#isOver(row)) return this.#end(row);
    if (plan.start !== undefined) await commitJobs(this.#context, [this.#unblock(row, { results: "[]" })]);
  }

  async #decideNext(row: JobRow, stored: StoredWorkflow, { before, rest }: NextPosition): Promise<void> {
    const { ends, size } = await this.#ends(finalsOf(before));
    if (!isCompleted(before, ends)) return halt(this.#context, stored, rest);
    // End the step on the row as it was read: another process may have started it in time. Ending it makes the
    // next step ready, and that one is cancelled.
    if (row.options?.step?.waitsFor?.role === "barrier" || this.#isOver(row)) return this.#end(row);
    await commitJobs(this.#context, [this.#unblock(row, this.#handed(before, ends, size))]);
  }

  /** What the step after a node gets. */
  #handed(node: PlanNode, ends: Ends, size: number): Handed {
    if (size > this.#context.documentLimit) return { results: "[]", size };
    return { results: JSON.stringify(handedOn(node, ends)), hidesResults: hidesAny(ends.keys(), ends) };
  }

  /** Ends a barrier job, so that the steps behind it become ready; cancels a step or callback. */
  async #end(row: JobRow): Promise<void> {
    const now = this.#context.clock.now();
    await commitJobs(this.#context, [this.#job(row, haltingDecision(this.#context, row, now), now)]);
  }

  /** How these jobs ended. Results beyond the size of a document are left out, because nobody can get them. */
  async #ends(ids: readonly JobId[]): Promise<{ ends: Ends; size: number }> {
    const { store, documentLimit } = this.#context;
    let size = 0;
    const ends = new Map<JobId, Pick<JobRow, "state" | "result"> & { readonly hidesResult: boolean }>();
    for await (const { id, state, result, options } of rowsOf(store, [...new Set(ids)], documentLimit)) {
      size += result?.length ?? 0;
      const hidesResult = pathsWithin(options?.redact, "result").length > 0;
      ends.set(id, { state, result, hidesResult });
    }
    return { ends, size };
  }
}

/** Steps that are decided, steps that need the plan of their workflow, and the characters of the results that were read. */
interface Sorted {
  readonly ready: readonly DecidedJob[];
  readonly slow: readonly JobRow[];
  readonly size: number;
}

type Handed = Pick<EventOf<"unblock">, "results" | "size" | "hidesResults">;

function handedTo(after: readonly JobId[], ends: Ends, isCut: boolean, size: number): Handed {
  return isCut
    ? { results: "[]", size }
    : { results: resultsOf(after, ends), hidesResults: hidesAny(after, ends) };
}

function hidesAny(ids: Iterable<JobId>, ends: Ends): boolean {
  for (const id of ids) if (ends.get(id)?.hidesResult) return true;
  return false;
}

/** Results are JSON texts, so they are joined without parsing. */
function resultsOf(after: readonly JobId[], ends: Ends): JsonText {
  return `[${after.map((id) => ends.get(id)?.result ?? "null").join(",")}]`;
}
