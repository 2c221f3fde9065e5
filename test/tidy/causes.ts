import type { Node } from "oxc-parser";
import { type Finding, isTest, type Source, walk } from "./source.ts";

const FIX = "Name what was caught and pass it on: new CurfewError(code, message, { cause: error }).";

/** An error that is thrown because of another one carries it, or nobody learns what really failed. */
export function lostCauses(sources: readonly Source[]): Finding[] {
  return sources.flatMap((source) => {
    if (!source.path.startsWith("src/") || isTest(source.path)) return [];
    const found: Finding[] = [];
    walk(source.program, (node, parents) => {
      if (node.type !== "ThrowStatement") return;
      const caught = caughtName(parents);
      if (caught === undefined || passes(node.argument, caught)) return;
      const line = source.lineAt(node.start);
      found.push({ path: source.path, line, says: "throws another error without its cause.", fix: FIX });
    });
    return found;
  });
}

/** The name of what was caught where a statement stands: null if it has none, undefined if nothing was caught there. */
function caughtName(parents: readonly Node[]): string | null | undefined {
  for (const [index, node] of parents.entries()) {
    if (node.type === "CatchClause") return node.param?.type === "Identifier" ? node.param.name : null;
    if (node.type === "ArrowFunctionExpression" || node.type === "FunctionExpression") {
      if (!isCatchCall(parents[index + 1])) return undefined;
      const [first] = node.params;
      return first?.type === "Identifier" ? first.name : null;
    }
    if (node.type === "FunctionDeclaration") return undefined;
  }
  return undefined;
}

function isCatchCall(node: Node | undefined): boolean {
  if (node?.type !== "CallExpression" || node.callee.type !== "MemberExpression") return false;
  const { property } = node.callee;
  return property.type === "Identifier" && property.name === "catch";
}

/** Whether the caught value itself is thrown or handed on, and not only a part of it such as its message. */
function passes(thrown: Node, caught: string | null): boolean {
  if (thrown.type === "Identifier" || thrown.type === "MemberExpression") return true;
  let isPassed = false;
  walk(thrown, (node, parents) => {
    if (node.type !== "Identifier" || node.name !== caught) return;
    const parent = parents[0];
    const isPart =
      parent?.type === "MemberExpression" ||
      (parent?.type === "TSAsExpression" && parents[1]?.type === "ParenthesizedExpression") ||
      (parent?.type === "TSAsExpression" && parents[1]?.type === "MemberExpression");
    if (!isPart) isPassed = true;
  });
  return isPassed;
}
