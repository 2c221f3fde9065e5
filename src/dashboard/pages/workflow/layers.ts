import type { Workflow, WorkflowStep } from "../../../ojs/replies/wire-replies.ts";

/** A workflow as a drawing needs it: columns of steps, and which step waits for which. */
export interface Layout {
  readonly layers: readonly (readonly WorkflowStep[])[];
  /** Pairs of ids; null where every step of a column waits for all of the column before. */
  readonly edges: readonly (readonly [from: string, to: string])[] | null;
  /** Whether the server said the dependencies. Otherwise columns are what the order and the times of the steps tell. */
  readonly isSaid: boolean;
}

export function layoutOf({ type, steps = [] }: Pick<Workflow, "type" | "steps">): Layout {
  if (steps.some(({ depends_on }) => depends_on !== undefined)) return saidLayout(steps);
  if (type === "chain") return { layers: chained(steps), edges: null, isSaid: false };
  return { layers: steps.length === 0 ? [] : [steps], edges: null, isSaid: true };
}

/** Each step stands behind the last one that it waits for. */
function saidLayout(steps: readonly WorkflowStep[]): Layout {
  const depths = new Map<string, number>();
  const byId = new Map(steps.map((step) => [step.id, step]));
  const depthOf = (step: WorkflowStep, seen: ReadonlySet<string>): number => {
    const known = depths.get(step.id);
    if (known !== undefined) return known;
    const parents = (step.depends_on ?? []).flatMap((id) => {
      const parent = byId.get(id);
      return parent && !seen.has(id) ? [parent] : [];
    });
    const within = new Set([...seen, step.id]);
    const depth = Math.max(-1, ...parents.map((parent) => depthOf(parent, within))) + 1;
    depths.set(step.id, depth);
    return depth;
  };
  const layers: WorkflowStep[][] = [];
  for (const step of steps) {
    const depth = depthOf(step, new Set());
    layers[depth] ??= [];
    layers[depth].push(step);
  }
  const edges = steps.flatMap(({ id, depends_on = [] }) =>
    depends_on.filter((parent) => byId.has(parent)).map((parent) => [parent, id] as const),
  );
  return { layers: layers.filter(Boolean), edges, isSaid: true };
}

const LIVE = new Set(["available", "active", "retryable", "scheduled"]);

/** Steps of a chain that ran at the same time belong to a group within it: a chain never runs two steps at once. */
function areTogether(one: WorkflowStep, other: WorkflowStep): boolean {
  if (LIVE.has(one.state) && LIVE.has(other.state)) return true;
  if (one.started_at === undefined || other.started_at === undefined) return false;
  const end = one.completed_at === undefined ? Number.POSITIVE_INFINITY : Date.parse(one.completed_at);
  return Date.parse(other.started_at) < end;
}

function chained(steps: readonly WorkflowStep[]): WorkflowStep[][] {
  const layers: WorkflowStep[][] = [];
  for (const step of steps) {
    const last = layers.at(-1);
    if (last?.some((one) => areTogether(one, step))) last.push(step);
    else layers.push([step]);
  }
  return layers;
}
