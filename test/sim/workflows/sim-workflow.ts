import { unchecked } from "../../../src/core/job/job-definition.ts";
import { constant } from "../../../src/core/job/policy/retry.ts";
import type { Json } from "../../../src/core/schema.ts";
import {
  batch,
  chain,
  graph,
  group,
  type StepNode,
  step,
  type WorkflowNode,
} from "../../../src/core/workflow/node.ts";
import { defineJob } from "../../../src/index.ts";
import type { Dice } from "../dice.ts";

/** What one step shall do. Each has a number of its own, by which the checker knows it. */
export interface Script {
  readonly n: number;
  readonly takes: number;
  /** How many of its first attempts fail: more than there are attempts, and it fails for good. */
  readonly fails: number;
  readonly retention: "0s" | "2s" | "1d";
}

export interface StepSpec extends Script {
  readonly kind: "step";
  readonly delay: number;
  /** The limit that it runs under, shared with steps of all workflows. */
  readonly limit: SimLimit | undefined;
}

export type SimLimit = (typeof LIMITS)[number];

/** What steps wait for beside their turn. */
export const LIMITS = [
  { key: "one", concurrency: 1 },
  { key: "order", concurrency: 1, strict: true },
  { key: "three", concurrency: 3 },
  { key: "rate", rate: { limit: 5, per: "500ms" } },
] as const;

export interface Callbacks {
  readonly onSuccess?: StepSpec;
  readonly onFailure?: StepSpec;
  readonly onComplete?: StepSpec;
}

/** A workflow as it was drawn. */
export type Spec =
  | StepSpec
  | { readonly kind: "chain"; readonly nodes: readonly Spec[] }
  | { readonly kind: "group"; readonly nodes: readonly Spec[] }
  | { readonly kind: "batch"; readonly nodes: readonly Spec[]; readonly callbacks: Callbacks }
  | {
      readonly kind: "graph";
      readonly nodes: readonly Spec[];
      readonly after: readonly (readonly number[])[];
    };

const ATTEMPTS = 3;

const SIM_STEP = {
  type: "sim.step",
  payload: unchecked<Script>(),
  result: unchecked<{ n: number }>(),
  timeouts: { attempt: "3s", grace: "300ms" },
  retry: { attempts: ATTEMPTS, backoff: constant({ first: "50ms" }) },
} as const;

/** One kind of step without a limit, and one for each limit. */
const PLAIN = defineJob(SIM_STEP);
const LIMITED = new Map(
  LIMITS.map((limit) => [limit.key, defineJob({ ...SIM_STEP, type: `sim.${limit.key}`, limit })] as const),
);
export const simSteps = [PLAIN, ...LIMITED.values()];

/** Draws workflows; the numbers of steps are never used twice. */
export class Specs {
  readonly #dice: Dice;
  readonly #hasLimits: boolean;
  #next = 0;

  constructor(dice: Dice) {
    this.#dice = dice;
    this.#hasLimits = dice.chance(0.4);
  }

  draw(): Spec {
    const dice = this.#dice;
    if (dice.chance(0.01)) return this.#wide(520 + dice.int(100));
    return this.#node(dice.pick([1, 2, 2, 3]));
  }

  #node(depth: number): Spec {
    const dice = this.#dice;
    if (depth === 0) return this.step();
    const nodes = Array.from({ length: 1 + dice.int(4) }, () => this.#node(dice.chance(0.6) ? 0 : depth - 1));
    const kind = dice.pick(["chain", "chain", "group", "batch", "graph", "graph"] as const);
    if (kind === "graph") return this.#graph(nodes);
    return kind === "batch" ? { kind, nodes, callbacks: this.#callbacks() } : { kind, nodes };
  }

  /** Each node waits for some of those before it. */
  #graph(few: readonly Spec[]): Spec {
    const dice = this.#dice;
    const nodes = [...few, ...Array.from({ length: dice.int(5) }, () => this.step())];
    const after = nodes.map((_, nth) =>
      Array.from({ length: nth }, (_each, place) => place).filter(() => dice.chance(0.4)),
    );
    return { kind: "graph", nodes, after };
  }

  /** More than is stored in one commit. */
  #wide(width: number): Spec {
    const nodes = Array.from({ length: width }, () => ({
      ...this.step(),
      takes: 5,
      fails: 0,
      delay: 0,
      limit: undefined,
    }));
    return { kind: "chain", nodes: [this.step(), { kind: "group", nodes }, this.step()] };
  }

  #callbacks(): Callbacks {
    const dice = this.#dice;
    return {
      ...(dice.chance(0.6) && { onSuccess: this.step() }),
      ...(dice.chance(0.6) && { onFailure: this.step() }),
      ...(dice.chance(0.6) && { onComplete: this.step() }),
    };
  }

  step(): StepSpec {
    const dice = this.#dice;
    return {
      kind: "step",
      n: this.#next++,
      takes: dice.between(1, dice.chance(0.05) ? 6_000 : 300),
      fails: dice.chance(0.75) ? 0 : dice.chance(0.6) ? 1 + dice.int(ATTEMPTS - 1) : ATTEMPTS,
      retention: dice.pick(["0s", "2s", "1d"] as const),
      delay: dice.chance(0.1) ? dice.between(1, 2_000) : 0,
      limit: this.#hasLimits && dice.chance(0.3) ? dice.pick(LIMITS) : undefined,
    };
  }
}

/** The workflow that a user would write for it. */
export function built(spec: Spec): WorkflowNode {
  if (spec.kind === "step") return builtStep(spec);
  const nodes = spec.nodes.map(built) as [WorkflowNode, ...WorkflowNode[]];
  if (spec.kind === "chain") return chain(nodes);
  if (spec.kind === "group") return group(nodes);
  if (spec.kind === "graph")
    return graph(
      Object.fromEntries(
        nodes.map((run, nth) => [
          `n${nth}`,
          { after: spec.after[nth]?.map((place) => `n${place}`) ?? [], run },
        ]),
      ),
    );
  const { onSuccess, onFailure, onComplete } = spec.callbacks;
  return batch(nodes, {
    ...(onSuccess && { onSuccess: builtStep(onSuccess) }),
    ...(onFailure && { onFailure: builtStep(onFailure) }),
    ...(onComplete && { onComplete: builtStep(onComplete) }),
  });
}

function builtStep({ n, takes, fails, retention, delay, limit }: StepSpec): StepNode {
  return step(
    (limit && LIMITED.get(limit.key)) ?? PLAIN,
    { n, takes, fails, retention },
    {
      ...(delay > 0 && { delay: `${delay}ms` as const }),
      retention: { completed: retention, discarded: retention, cancelled: retention },
    },
  );
}

export function stepsIn(spec: Spec): StepSpec[] {
  return spec.kind === "step" ? [spec] : spec.nodes.flatMap(stepsIn);
}

export function callbacksIn(spec: Spec): StepSpec[] {
  if (spec.kind === "step") return [];
  const inner = spec.nodes.flatMap(callbacksIn);
  if (spec.kind !== "batch") return inner;
  const { onSuccess, onFailure, onComplete } = spec.callbacks;
  return [...inner, ...[onSuccess, onFailure, onComplete].filter((one) => one !== undefined)];
}

export type Outcomes = ReadonlyMap<number, "completed" | "cancelled" | "discarded">;

export function succeeded(spec: Spec, ends: Outcomes): boolean {
  if (spec.kind === "step") return ends.get(spec.n) === "completed";
  if (spec.kind === "chain") return spec.nodes.every((node) => succeeded(node, ends));
  return spec.nodes.every((node) => succeeded(node, ends));
}

/** What a node gives, by the rules and not by the code. */
export function resultIn(spec: Spec, ends: Outcomes): Json {
  if (spec.kind === "step") return ends.get(spec.n) === "completed" ? { n: spec.n } : null;
  if (spec.kind === "chain") return resultIn(spec.nodes.at(-1) as Spec, ends);
  if (spec.kind === "graph") {
    const lasts = spec.nodes.flatMap((node, nth) =>
      spec.after.some((places) => places.includes(nth)) ? [] : [[`n${nth}`, resultIn(node, ends)] as const],
    );
    return Object.fromEntries(lasts);
  }
  return spec.nodes.map((node) => resultIn(node, ends));
}

export function handedOnBy(spec: Spec, ends: Outcomes): Json {
  const last = spec.kind === "chain" ? (spec.nodes.at(-1) as Spec) : spec;
  if (last.kind === "chain") return handedOnBy(last, ends);
  const isOne = last.kind === "step" || last.kind === "graph";
  return isOne ? [resultIn(last, ends)] : resultIn(last, ends);
}
