import type { Node } from "oxc-parser";
import { type Finding, isTest, parse, type Source, type TextFile, walk } from "./source.ts";

/**
 * Files whose comments and test names are checked. In `src`, strings are checked too: they are errors and logs. Of other
 * text files, such as guides, every line is checked.
 */
const SCOPE: readonly RegExp[] = [
  /^test\/.*\.ts$/,
  /\.test(-d)?\.ts$/,
  /^src\/.*\.tsx?$/,
  /^(README|ARCHITECTURE|CHANGELOG|CONTRIBUTING)\.md$/,
  /^docs\/.*\.md$/,
];

/** Phrases that make a reader guess who or how much is meant, and what to write instead. */
const RETIRED: readonly { readonly pattern: RegExp; readonly fix: string }[] = [
  { pattern: /\bwhoever\b/i, fix: "Name the actor: the worker, the sweep, another process." },
  { pattern: /\b(?:told|tells) of\b/i, fix: "An event is recorded, announced or notified." },
  { pattern: /\bso (?:many|long|often)\b/i, fix: "Name the number or the constant." },
  { pattern: /\bbut for\b/i, fix: "Write except, or say what is left out." },
  { pattern: /\bone's own\b/i, fix: "Say whose: yours, the worker's, the caller's." },
  { pattern: /\bnet below\b/i, fix: "Say what fails, and what helps then." },
];

const RUNNERS = new Set(["it", "test", "describe"]);

interface Prose {
  readonly text: string;
  readonly line: number;
}

export function retiredPhrases(files: readonly TextFile[]): Finding[] {
  return files
    .filter(({ path }) => isChecked(path))
    .flatMap((file) =>
      proseOf(file).flatMap(({ text, line }) =>
        RETIRED.flatMap(({ pattern, fix }) => {
          const match = pattern.exec(text);
          if (!match) return [];
          const breaks = text.slice(0, match.index).split("\n").length - 1;
          return [{ path: file.path, line: line + breaks, says: `says "${match[0]}".`, fix }];
        }),
      ),
    );
}

function isChecked(path: string): boolean {
  return SCOPE.some((pattern) => pattern.test(path));
}

function proseOf(file: TextFile): Prose[] {
  if (!/\.tsx?$/.test(file.path)) return [{ text: file.text, line: 1 }];
  const source = parse(file);
  return [
    ...source.comments.map(({ value, start }) => ({ text: value, line: source.lineAt(start) })),
    ...namesOf(source),
    ...(file.path.startsWith("src/") && !isTest(file.path) ? textsOf(source) : []),
  ];
}

/** The strings and templates of a file. */
function textsOf(source: Source): Prose[] {
  const texts: Prose[] = [];
  walk(source.program, (node) => {
    if (node.type !== "TemplateElement" && !(node.type === "Literal" && typeof node.value === "string"))
      return;
    texts.push({ text: source.text.slice(node.start, node.end), line: source.lineAt(node.start) });
  });
  return texts;
}

/** The names of tests: what `it`, `test` and `describe` are called with first, plain or by `each`. */
function namesOf(source: Source): Prose[] {
  const names: Prose[] = [];
  walk(source.program, (node) => {
    if (node.type !== "CallExpression" || !RUNNERS.has(rootName(node.callee) ?? "")) return;
    const [name] = node.arguments;
    if (name?.type !== "TemplateLiteral" && name?.type !== "Literal") return;
    names.push({ text: source.text.slice(name.start, name.end), line: source.lineAt(name.start) });
  });
  return names;
}

/** `it.each([…])("…")` and `it.concurrent("…")` -> it. */
function rootName(node: Node): string | undefined {
  if (node.type === "Identifier") return node.name;
  if (node.type === "MemberExpression") return rootName(node.object);
  return node.type === "CallExpression" ? rootName(node.callee) : undefined;
}
