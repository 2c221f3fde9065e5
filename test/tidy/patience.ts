import type { Node } from "oxc-parser";
import { type Finding, type Source, walk } from "./source.ts";

/** What `vitest.config.ts` gives a test or a hook, and what it gives `expect.poll`, in milliseconds. */
const TEST = 300_000;
const POLL = 60_000;
/** What `vi.waitFor` and `vi.waitUntil` wait if nobody says how long. */
const WAIT = 1_000;
const WAITS = new Set(["waitFor", "waitUntil"]);
const RUNNERS = new Set(["it", "beforeAll", "beforeEach", "afterAll", "afterEach"]);
const FIX =
  "Leave it out, or use expect.poll: a busy machine takes ten times as long, and a test that hangs is found all the same.";

/** A limit that is shorter than the usual one fails on a busy machine, and judges only how busy it is. */
export function shortLimits(sources: readonly Source[]): Finding[] {
  return sources.flatMap((source) => {
    const found: Finding[] = [];
    walk(source.program, (node) => {
      if (node.type !== "CallExpression") return;
      const least = leastOf(node.callee);
      const limit =
        least === undefined
          ? undefined
          : (node.arguments.map(limitOf).find((one) => one !== undefined) ?? usualOf(node.callee));
      if (least === undefined || limit === undefined || limit >= least) return;
      const says = `has a limit of ${limit} ms, which is under the ${least} of vitest.config.ts.`;
      found.push({ path: source.path, line: source.lineAt(node.start), says, fix: FIX });
    });
    return found;
  });
}

function leastOf(callee: Node): number | undefined {
  if (callee.type === "MemberExpression" && callee.property.type === "Identifier")
    if (callee.property.name === "poll" && rootOf(callee) === "expect") return POLL;
  if (usualOf(callee) !== undefined) return POLL;
  const root = rootOf(callee);
  return root !== undefined && RUNNERS.has(root) ? TEST : undefined;
}

function usualOf(callee: Node): number | undefined {
  if (callee.type !== "MemberExpression" || callee.property.type !== "Identifier") return undefined;
  return rootOf(callee) === "vi" && WAITS.has(callee.property.name) ? WAIT : undefined;
}

/** `it.each(cases)("…")` and `it.concurrent("…")` -> it. */
function rootOf(node: Node): string | undefined {
  if (node.type === "Identifier") return node.name;
  if (node.type === "MemberExpression") return rootOf(node.object);
  return node.type === "CallExpression" ? rootOf(node.callee) : undefined;
}

/** The limit that an argument sets: a number, or an option. */
function limitOf(node: Node): number | undefined {
  if (node.type === "Literal") return typeof node.value === "number" ? node.value : undefined;
  if (node.type !== "ObjectExpression") return undefined;
  for (const property of node.properties) {
    const isTimeout =
      property.type === "Property" && property.key.type === "Identifier" && property.key.name === "timeout";
    if (isTimeout) return limitOf(property.value);
  }
  return undefined;
}
