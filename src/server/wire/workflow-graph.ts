import { linkSteps } from "../../core/workflow/links.ts";

/** A step with a name, and the names of the steps that it waits for. */
interface NamedStep {
  readonly id?: unknown;
  readonly depends_on?: unknown;
  readonly [field: string]: unknown;
}

export interface StepProblem {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

export interface StepGraph {
  /** The names, for the graph: a single step may have none. */
  readonly names: readonly string[];
  readonly after: readonly (readonly number[])[];
}

const NAME_LIMIT = 255;

/** Reads steps with `id` and `depends_on`: which waits for which, or the first thing that is wrong. */
export function readGraph(steps: readonly NamedStep[]): StepGraph | StepProblem {
  const names: string[] = [];
  const known = new Set<string>();
  for (const [index, { id }] of steps.entries()) {
    const name = id == null && steps.length === 1 ? "step" : id;
    const path = ["steps", index, "id"];
    if (typeof name !== "string" || name === "" || name.length > NAME_LIMIT)
      return { path, message: `give each step a name of 1 to ${NAME_LIMIT} characters, or name the type` };
    if (known.has(name)) return { path, message: `${shown(name)} is the name of two steps; use another one` };
    known.add(name);
    names.push(name);
  }
  const lists: string[][] = [];
  for (const [index, { depends_on }] of steps.entries()) {
    const list = depends_on ?? [];
    if (!Array.isArray(list) || !list.every((name) => typeof name === "string"))
      return { path: ["steps", index, "depends_on"], message: "write a list of ids of other steps" };
    // A name that is repeated says the same once more.
    lists.push([...new Set<string>(list)]);
  }
  const links = linkSteps(names, lists);
  if ("after" in links) return { names, after: links.after };
  const { step, value, fix } = links.problem;
  const said = steps[step]?.depends_on as readonly string[];
  return {
    path: ["steps", step, "depends_on", Math.max(0, said.indexOf(value))],
    message: `${shown(value)}: ${fix}`,
  };
}

function shown(name: string): string {
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name);
}

/** The server gives jobs their ids, so the client's name of a step is returned as `step_id`. */
export function plainStep({ id, ...job }: NamedStep): object {
  return id == null ? job : { ...job, step_id: id };
}
