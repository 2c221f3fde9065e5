import type { Node } from "oxc-parser";
import { LIFECYCLE_EVENTS } from "../../src/core/job/lifecycle-events.ts";
import { type Finding, isTest, type Source, walk } from "./source.ts";

/** The one file that calls `store.commit`, and the one that emits lifecycle events. */
const COMMIT = "src/engine/commit/commit.ts";
const ANNOUNCE = "src/engine/commit/announce.ts";
/** Stores implement `commit`, and what tests them calls it. The event bus implements `announce`. */
const OUTSIDE = [
  "src/stores/",
  "src/testing/",
  "src/engine/events/event-bus.ts",
  // The store as one tenant sees it.
  "src/engine/tenants/scoped-store.ts",
];

const LIFECYCLE: ReadonlySet<unknown> = new Set(LIFECYCLE_EVENTS);

const COMMIT_FIX = `Use commitJobs, commitDecision, changeRecord or commitUnits of ${COMMIT}, or a CommitQueue.`;
const ANNOUNCE_FIX = `Hand the decision to commitJobs or a CommitQueue, which announce it, or call ${ANNOUNCE}.`;

/** There is one write path: otherwise retries, counters, events and traces of two places drift apart. */
export function writePath(sources: readonly Source[]): Finding[] {
  return sources.flatMap((source) => {
    const { path } = source;
    if (!path.startsWith("src/") || isTest(path) || OUTSIDE.some((start) => path.startsWith(start)))
      return [];
    const found: Finding[] = [];
    walk(source.program, (node) => {
      if (node.type !== "CallExpression") return;
      const line = source.lineAt(node.start);
      if (path !== COMMIT && isStoreCommit(node))
        found.push({ path, line, says: "commits to a store.", fix: COMMIT_FIX });
      if (path !== ANNOUNCE && announcesJob(node))
        found.push({ path, line, says: "emits lifecycle events of jobs.", fix: ANNOUNCE_FIX });
    });
    return found;
  });
}

type Call = Extract<Node, { type: "CallExpression" }>;

/** `store.commit(…)`, however the store is reached, and `anything.commit([…])`: a list of units goes to a store. */
function isStoreCommit({ callee, arguments: given }: Call): boolean {
  if (callee.type !== "MemberExpression" || nameOf(callee) !== "commit") return false;
  return given[0]?.type === "ArrayExpression" || nameOf(callee.object) === "store";
}

/** `bus.announce(…)`, and `emit` of an event whose name is written out and is one of a job's lifecycle. */
function announcesJob(call: Call): boolean {
  const { callee } = call;
  if (callee.type !== "MemberExpression") return false;
  const name = nameOf(callee);
  if (name === "announce") return nameOf(callee.object) === "bus";
  if (name !== "emit") return false;
  let isLifecycle = false;
  for (const given of call.arguments)
    walk(given, (node) => {
      isLifecycle ||= node.type === "Literal" && LIFECYCLE.has(node.value);
    });
  return isLifecycle;
}

/** The last name of `store`, `context.store`, `this.#store` or `parts["store"]`. */
function nameOf(node: Node): string | undefined {
  if (node.type === "Identifier") return node.name;
  if (node.type !== "MemberExpression") return undefined;
  const { property } = node;
  if (property.type === "Literal") return String(property.value);
  return "name" in property && !node.computed ? String(property.name) : undefined;
}
