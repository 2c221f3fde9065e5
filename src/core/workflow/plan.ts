import type { JobId } from "../job/job.ts";
import { inOrder } from "./links.ts";
import { type AnyNode, type BatchCallbacks, type GraphNode, linkKey, type StepNode } from "./node.ts";

/**
 * A workflow as it is stored: the tree of its nodes, with their jobs. `begins` names, for each node of a chain after
 * the first, the job that is woken when the node before it has ended: the step itself, or a barrier. A barrier is a
 * job that is never run; when it ends, all steps of a group become ready.
 */
export type PlanNode =
  | { readonly step: JobId }
  | { readonly chain: readonly PlanNode[]; readonly begins: readonly JobId[] }
  | { readonly group: readonly PlanNode[] }
  | { readonly batch: readonly PlanNode[]; readonly callbacks: PlanCallbacks }
  | { readonly graph: readonly PlanMember[] };

/** A node of a graph, in the order in which they were written. */
export interface PlanMember {
  readonly name: string;
  readonly node: PlanNode;
  /** The positions of the members that it waits for. */
  readonly after: readonly number[];
  /** The job that is woken when these have ended: the step itself, or a barrier that members may share. */
  readonly begin?: JobId;
}

export interface PlanCallbacks {
  readonly onSuccess?: JobId;
  readonly onFailure?: JobId;
  readonly onComplete?: JobId;
}

type CallbackName = keyof PlanCallbacks;
const CALLBACKS: readonly CallbackName[] = ["onSuccess", "onFailure", "onComplete"];

export interface Plan {
  readonly root: PlanNode;
  /** The job that is woken when everything has ended. */
  readonly end: JobId;
  /** The barrier before the first steps, if there are too many to store in one commit. */
  readonly start?: JobId;
}

/**
 * The role of a job in its workflow. `barrier` and `end` are never run: they wait, the step scheduler decides on
 * them, and they are deleted.
 */
export type Role = "step" | "callback" | "barrier" | "end";

/** One job of a workflow before it is stored. */
export interface PlannedJob {
  readonly id: JobId;
  readonly role: Role;
  /** The node of a step or callback. */
  readonly node: StepNode | undefined;
  /** How many countdowns it waits for; 0 if it starts at once. */
  readonly needs: number;
  /** The jobs that count down when this one ends. */
  readonly wakes: readonly JobId[];
  /** The jobs whose results it gets, if they are few and none is nested. Otherwise the plan says it. */
  readonly after?: readonly JobId[];
}

/** The most predecessors that a job itself names. That saves reading the plan for each step of a chain. */
const FEW = 16;

export function childrenOf(node: PlanNode): readonly PlanNode[] {
  if ("step" in node) return [];
  if ("chain" in node) return node.chain;
  if ("graph" in node) return node.graph.map(({ node: inner }) => inner);
  return "group" in node ? node.group : node.batch;
}

/** The members of a graph that no other member waits for. */
export function lastMembersOf(members: readonly PlanMember[]): PlanMember[] {
  const isBefore = new Set(members.flatMap(({ after }) => after));
  return members.filter((_, place) => !isBefore.has(place));
}

/** The steps that must end for a node to end. */
export function finalsOf(node: PlanNode): JobId[] {
  if ("step" in node) return [node.step];
  if ("chain" in node) return finalsOf(node.chain[node.chain.length - 1] as PlanNode);
  if ("graph" in node) return lastMembersOf(node.graph).flatMap(({ node: inner }) => finalsOf(inner));
  return childrenOf(node).flatMap(finalsOf);
}

/** The steps that start when a node starts. */
function startersOf(node: PlanNode): JobId[] {
  if ("step" in node) return [node.step];
  if ("chain" in node) return startersOf(node.chain[0] as PlanNode);
  if ("graph" in node)
    return node.graph.flatMap(({ node: inner, after }) => (after.length === 0 ? startersOf(inner) : []));
  return childrenOf(node).flatMap(startersOf);
}

/** All jobs of a node, each after those that wake it. In reverse order, no job wakes one that still exists. */
export function jobsOf(node: PlanNode): JobId[] {
  if ("step" in node) return [node.step];
  if ("chain" in node)
    return node.chain.flatMap((inner, index) => {
      const begin = node.begins[index - 1];
      return begin === undefined || "step" in inner ? jobsOf(inner) : [begin, ...jobsOf(inner)];
    });
  if ("graph" in node) return memberJobs(node.graph, () => true);
  const members = childrenOf(node).flatMap(jobsOf);
  return "batch" in node ? [...members, ...callbacksOf(node.callbacks)] : members;
}

/** The jobs of some members of a graph and the barriers before them, each after those that wake it. */
function memberJobs(members: readonly PlanMember[], isMeant: (place: number) => boolean): JobId[] {
  const jobs = new Set<JobId>();
  for (const place of inOrder(members.map(({ after }) => after))) {
    const { node, begin } = members[place] as PlanMember;
    if (!isMeant(place)) continue;
    if (begin !== undefined) jobs.add(begin);
    for (const id of jobsOf(node)) jobs.add(id);
  }
  return [...jobs];
}

/** The steps in the order in which they were written, without callbacks and barriers. */
export function stepsOf(node: PlanNode): JobId[] {
  return "step" in node ? [node.step] : childrenOf(node).flatMap(stepsOf);
}

function callbacksOf(callbacks: PlanCallbacks): JobId[] {
  return CALLBACKS.flatMap((name) => callbacks[name] ?? []);
}

/** What a woken job depends on: the node before it, and the jobs to halt if that node failed. */
export type PlanPosition =
  | { readonly before: PlanNode; readonly rest: readonly JobId[]; readonly begins: PlanNode }
  | { readonly batch: PlanNode; readonly callback: CallbackName };

/** The position of a job that is not ready; undefined if it depends on no node. */
export function positionOf(node: PlanNode, id: JobId): PlanPosition | undefined {
  if ("batch" in node) {
    const callback = CALLBACKS.find((name) => node.callbacks[name] === id);
    if (callback) return { batch: node, callback };
  }
  for (const inner of childrenOf(node)) {
    const position = positionOf(inner, id);
    if (position) return position;
  }
  if ("graph" in node) return memberPosition(node.graph, id);
  if (!("chain" in node)) return undefined;
  for (let index = 1; index < node.chain.length; index++) {
    const begins = node.chain[index] as PlanNode;
    if (node.begins[index - 1] !== id && !startersOf(begins).includes(id)) continue;
    const rest = jobsOf({ chain: node.chain.slice(index - 1), begins: node.begins.slice(index - 1) });
    const before = node.chain[index - 1] as PlanNode;
    return { before, begins, rest: rest.slice(jobsOf(before).length) };
  }
  return undefined;
}

/**
 * The position of a member of a graph. If a member before it failed, the rest is every member that waits only for
 * members that will never run. A member that also waits for others is decided when these have ended, so a graph has
 * ended when its last members have.
 */
function memberPosition(members: readonly PlanMember[], id: JobId): PlanPosition | undefined {
  const place = members.findIndex(
    ({ node, after, begin }) => after.length > 0 && (begin === id || startersOf(node).includes(id)),
  );
  const member = members[place];
  if (!member) return undefined;
  const halted = new Set<number>();
  for (const next of inOrder(members.map(({ after }) => after))) {
    const { begin, after } = members[next] as PlanMember;
    const isSame = begin === member.begin && begin !== undefined;
    if (isSame || (after.length > 0 && after.every((before) => halted.has(before)))) halted.add(next);
  }
  const before = { group: member.after.map((each) => (members[each] as PlanMember).node) };
  return { before, begins: member.node, rest: memberJobs(members, (each) => halted.has(each)) };
}

/**
 * Makes the ids and the plan of a workflow. For each job it computes what the job waits for and what it wakes.
 * `hasBarrier` puts a barrier before the first steps.
 */
export function layOut(
  root: AnyNode,
  nextId: () => JobId,
  hasBarrier: boolean,
): { readonly plan: Plan; readonly jobs: readonly PlannedJob[] } {
  const layout = new Layout(nextId);
  const start = hasBarrier ? layout.barrier() : undefined;
  const node = layout.node(root);
  const plan: Plan = { root: node, end: nextId(), ...(start !== undefined && { start }) };
  return { plan, jobs: layout.finish(plan) };
}

class Layout {
  readonly #nextId: () => JobId;
  readonly #nodes = new Map<JobId, StepNode>();
  readonly #roles = new Map<JobId, Role>();
  readonly #wakes = new Map<JobId, JobId[]>();
  readonly #needs = new Map<JobId, number>();
  readonly #after = new Map<JobId, readonly JobId[]>();

  constructor(nextId: () => JobId) {
    this.#nextId = nextId;
  }

  #add(role: Role, node?: StepNode): JobId {
    const id = this.#nextId();
    this.#roles.set(id, role);
    this.#wakes.set(id, []);
    if (node) this.#nodes.set(id, node);
    return id;
  }

  barrier(): JobId {
    return this.#add("barrier");
  }

  node(node: AnyNode): PlanNode {
    if (node.kind === "step") return { step: this.#add("step", node) };
    if (node.kind === "chain") return this.#chain(node.nodes);
    if (node.kind === "graph") return this.#graph(node);
    const members = node.nodes.map((inner) => this.node(inner));
    return node.kind === "group" ? { group: members } : this.#batch(members, node.callbacks);
  }

  #chain(nodes: readonly AnyNode[]): PlanNode {
    const inner: PlanNode[] = [];
    const begins: JobId[] = [];
    for (const [index, node] of nodes.entries()) {
      const barrier = index > 0 && node.kind !== "step" ? this.barrier() : undefined;
      const planned = this.node(node);
      const before = inner[index - 1];
      inner.push(planned);
      if (!before) continue;
      const begin = barrier ?? (planned as { readonly step: JobId }).step;
      begins.push(begin);
      this.#wait(begin, finalsOf(before));
      if (barrier !== undefined) this.#waitAll(barrier, startersOf(planned));
      const plain = plainSteps(before);
      if (plain) for (const id of startersOf(planned)) this.#after.set(id, plain);
    }
    return { chain: inner, begins };
  }

  #graph({ nodes, names, after }: GraphNode): PlanNode {
    const barriers = this.#barriers(nodes, after);
    const planned = nodes.map((node) => this.node(node));
    const begins = planned.map((node, place) => {
      if (after[place]?.length === 0) return undefined;
      return barriers.get(linkKey(after[place] ?? [])) ?? ("step" in node ? node.step : this.barrier());
    });
    const graph = planned.map((node, place): PlanMember => {
      const begin = begins[place];
      return {
        name: names[place] as string,
        node,
        after: after[place] ?? [],
        ...(begin !== undefined && { begin }),
      };
    });
    const waiting = new Set<JobId>();
    for (const { node, after, begin } of graph) {
      if (begin === undefined) continue;
      const before = after.map((place) => planned[place] as PlanNode);
      if (!waiting.has(begin)) this.#wait(begin, before.flatMap(finalsOf));
      waiting.add(begin);
      if (this.#roles.get(begin) === "barrier") this.#waitAll(begin, startersOf(node));
      const plain = plainSteps({ group: before });
      if (plain) for (const id of startersOf(node)) this.#after.set(id, plain);
    }
    return { graph };
  }

  /** The barriers of steps that wait for the same steps: without them, m steps after n would be m × n countdowns. */
  #barriers(nodes: readonly AnyNode[], after: GraphNode["after"]): ReadonlyMap<string, JobId> {
    const counts = new Map<string, { members: number; isWide: boolean }>();
    for (const list of after) {
      const key = linkKey(list);
      const isWide = list.length > 1 || list.some((place) => nodes[place]?.kind !== "step");
      counts.set(key, { members: (counts.get(key)?.members ?? 0) + 1, isWide });
    }
    const shared = [...counts].filter(
      ([key, { members, isWide }]) => key !== "" && members > (isWide ? 1 : FEW),
    );
    return new Map(shared.map(([key]) => [key, this.barrier()]));
  }

  #batch(members: readonly PlanNode[], callbacks: BatchCallbacks): PlanNode {
    const finals = members.flatMap(finalsOf);
    const planned: { -readonly [Name in CallbackName]?: JobId } = {};
    for (const name of CALLBACKS) {
      const node = callbacks[name];
      if (!node) continue;
      const id = this.#add("callback", node);
      planned[name] = id;
      this.#wait(id, finals);
    }
    return { batch: members, callbacks: planned };
  }

  #wait(id: JobId, feeders: readonly JobId[]): void {
    for (const feeder of feeders) this.#wakes.get(feeder)?.push(id);
    this.#needs.set(id, (this.#needs.get(id) ?? 0) + feeders.length);
  }

  #waitAll(barrier: JobId, starters: readonly JobId[]): void {
    for (const id of starters) this.#wait(id, [barrier]);
  }

  finish({ root, end, start }: Plan): PlannedJob[] {
    if (start !== undefined) {
      this.#waitAll(start, startersOf(root));
      for (const id of startersOf(root)) this.#after.set(id, []);
      this.#needs.set(start, 1);
    }
    const counted = [...this.#roles].filter(([, role]) => role !== "barrier").map(([id]) => id);
    this.#roles.set(end, "end");
    this.#wakes.set(end, []);
    this.#wait(end, counted);
    return Array.from(this.#roles, ([id, role]) => ({
      id,
      role,
      node: this.#nodes.get(id),
      needs: this.#needs.get(id) ?? 0,
      wakes: this.#wakes.get(id) ?? [],
      ...(this.#after.has(id) && { after: this.#after.get(id) as readonly JobId[] }),
    }));
  }
}

/** The steps whose results form the list of a node's results, if they are few. */
function plainSteps(node: PlanNode): readonly JobId[] | undefined {
  if ("step" in node) return [node.step];
  if ("chain" in node) return plainSteps(node.chain[node.chain.length - 1] as PlanNode);
  if ("graph" in node) return undefined;
  const members = childrenOf(node);
  if (members.length > FEW || !members.every((member) => "step" in member)) return undefined;
  return members.flatMap(finalsOf);
}
