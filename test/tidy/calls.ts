import type { Node } from "oxc-parser";
import { importsOf } from "./imports.ts";
import { type Finding, isTest, type Source, walk } from "./source.ts";

/** The one file that may touch the real clock and real chance. */
const SYSTEM = "src/engine/runtime/real-system.ts";
/** The clock that processes of one machine share; it is handed in as a part of the system, like the others. */
const MACHINE = "src/stores/sqlite/machine-clock.ts";
/** The same for the dashboard, which runs in a browser. */
const BROWSER = "src/dashboard/system.ts";
/** What runs inside a sandbox is a program of its own, next to the user's code, and is never simulated. */
const INSIDE = /^src\/sandbox\/child[a-z-]*\.ts$/;

const MEMBERS = new Set([
  "Date.now",
  "performance.now",
  "performance.timeOrigin",
  "Math.random",
  "process.hrtime",
  "Temporal.Now",
  "AbortSignal.timeout",
]);
const NAMES = new Set(["setTimeout", "setInterval", "setImmediate", "randomUUID", "randomUUIDv7"]);
const GLOBALS = new Set(["globalThis", "global", "window", "self", "crypto", "webcrypto"]);
const MODULES = new Set(["node:timers", "node:timers/promises", "timers", "timers/promises"]);

const FIX = `Take time and randomness from the injected clock and random; only ${SYSTEM} touches the real ones.`;

/** Time and chance are injected: one forgotten call and the simulator no longer replays from its seed. */
export function systemCalls(sources: readonly Source[]): Finding[] {
  return sources.flatMap((source) => {
    if (!source.path.startsWith("src/") || source.path === SYSTEM || isTest(source.path)) return [];
    if (source.path === MACHINE || source.path === BROWSER || INSIDE.test(source.path)) return [];
    const found: Finding[] = [];
    const add = (what: string, line: number) => {
      found.push({ path: source.path, line, says: `uses ${what}.`, fix: FIX });
    };
    for (const { from, line } of importsOf(source)) if (MODULES.has(from)) add(from, line);
    walk(source.program, (node, parents) => {
      const what = systemCall(node, parents[0]);
      if (what) add(what, source.lineAt(node.start));
    });
    return found;
  });
}

function systemCall(node: Node, parent: Node | undefined): string | undefined {
  switch (node.type) {
    case "MemberExpression": {
      if (node.object.type !== "Identifier") return undefined;
      const name = memberName(node);
      const text = `${node.object.name}.${name}`;
      const isGlobal = GLOBALS.has(node.object.name) && name !== undefined && NAMES.has(name);
      return MEMBERS.has(text) || isGlobal ? text : undefined;
    }
    case "NewExpression":
      return isDate(node.callee) && node.arguments.length === 0 ? "new Date() without an instant" : undefined;
    case "CallExpression":
      return isDate(node.callee) ? "Date()" : undefined;
    case "Identifier":
      return NAMES.has(node.name) && !isMemberOrKey(node, parent) ? node.name : undefined;
    default:
      return undefined;
  }
}

function isDate(node: Node): boolean {
  return node.type === "Identifier" && node.name === "Date";
}

function memberName(node: Extract<Node, { type: "MemberExpression" }>): string | undefined {
  if (!node.computed) return "name" in node.property ? String(node.property.name) : undefined;
  return node.property.type === "Literal" ? String(node.property.value) : undefined;
}

/** `clock.setTimeout` and a method declared under that name are the injected ones. */
function isMemberOrKey(node: Node, parent: Node | undefined): boolean {
  switch (parent?.type) {
    case "MemberExpression":
      return parent.property === node && !parent.computed;
    case "Property":
      return parent.key === node && !parent.computed && !parent.shorthand;
    case "MethodDefinition":
    case "PropertyDefinition":
    case "TSPropertySignature":
    case "TSMethodSignature":
      return parent.key === node && !parent.computed;
    default:
      return false;
  }
}
