import type { Node } from "oxc-parser";
import { type Finding, type Source, walk } from "./source.ts";

const FILE_LIMIT = 500;
const FUNCTION_LIMIT = 70;
/** A table may be as long as its data, but what computes with it belongs elsewhere. */
const TABLE_FUNCTION_LIMIT = 20;
const TABLE_MARK = "// tidy: table";

/** Files and functions stay short enough to be read in one go. */
export function sizes(sources: readonly Source[]): Finding[] {
  return sources.flatMap((source) => [...fileSize(source), ...functionSizes(source)]);
}

function isTable(source: Source): boolean {
  return source.text.startsWith(`${TABLE_MARK}\n`);
}

function fileSize(source: Source): Finding[] {
  const lines = source.text.split("\n").length - (source.text.endsWith("\n") ? 1 : 0);
  if (lines <= FILE_LIMIT || isTable(source)) return [];
  const says = `has ${lines} lines; the limit is ${FILE_LIMIT}.`;
  const fix = `Split it by what changes together. Only a pure data table may start with \`${TABLE_MARK}\`.`;
  return [{ path: source.path, line: FILE_LIMIT + 1, says, fix }];
}

function functionSizes(source: Source): Finding[] {
  const found: Finding[] = [];
  const limit = isTable(source) ? TABLE_FUNCTION_LIMIT : FUNCTION_LIMIT;
  walk(source.program, (node, parents) => {
    if (!isFunction(node) || isSuite(parents[0])) return;
    const line = source.lineAt(node.start);
    const lines = source.lineAt(node.end) - line + 1;
    if (lines <= limit) return;
    const what = isTable(source) ? "a function in a table" : "a function";
    const says = `has ${what} of ${lines} lines; the limit is ${limit}.`;
    found.push({ path: source.path, line, says, fix: "Give the parts names and functions of their own." });
  });
  return found;
}

function isFunction(node: Node): boolean {
  return (
    node.type === "FunctionDeclaration" ||
    node.type === "FunctionExpression" ||
    node.type === "ArrowFunctionExpression"
  );
}

/** The callback of `describe` groups tests; each test in it is measured on its own. */
function isSuite(parent: Node | undefined): boolean {
  if (parent?.type !== "CallExpression") return false;
  let callee: Node = parent.callee;
  while (callee.type === "MemberExpression" || callee.type === "CallExpression") {
    callee = callee.type === "MemberExpression" ? callee.object : callee.callee;
  }
  return callee.type === "Identifier" && callee.name === "describe";
}
