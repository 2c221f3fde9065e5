import type { Node } from "oxc-parser";
import { type Finding, type Source, type TextFile, walk } from "./source.ts";

const RUNNERS = new Set(["it", "test", "describe", "suite", "bench"]);
const MARKS = new Set(["skip", "only", "todo"]);

/** A test that does not run proves nothing, and a focused one silences all others. */
export function silencedTests(sources: readonly Source[]): Finding[] {
  return sources.flatMap((source) => {
    const found: Finding[] = [];
    walk(source.program, (node) => {
      if (node.type !== "MemberExpression" || node.property.type !== "Identifier") return;
      const mark = node.property.name;
      const runner = rootName(node.object);
      if (!MARKS.has(mark) || runner === undefined || !RUNNERS.has(runner)) return;
      const fix = "Mend the test or delete it; use skipIf with a reason where the machine cannot run it.";
      found.push({ path: source.path, line: source.lineAt(node.start), says: `has ${runner}.${mark}.`, fix });
    });
    return found;
  });
}

/** `it.concurrent.only` -> it. A call in between is no longer the runner. */
function rootName(node: Node): string | undefined {
  if (node.type === "Identifier") return node.name;
  return node.type === "MemberExpression" ? rootName(node.object) : undefined;
}

/** `any` and silenced errors are holes that the types around them do not show. */
export function typeHoles(sources: readonly Source[]): Finding[] {
  return sources.flatMap((source) => {
    const found: Finding[] = [];
    for (const { value, start } of source.comments) {
      const directive = /^[\s/*]*(@ts-(?:ignore|nocheck))/.exec(value)?.[1];
      if (!directive) continue;
      const fix = "Mend the type; where a test proves that misuse is refused, use @ts-expect-error.";
      found.push({ path: source.path, line: source.lineAt(start), says: `has ${directive}.`, fix });
    }
    if (!source.path.startsWith("src/")) return found;
    walk(source.program, (node) => {
      if (node.type !== "TSAnyKeyword") return;
      const fix = "Say what it is, or use unknown and look before use.";
      found.push({ path: source.path, line: source.lineAt(node.start), says: "uses the type any.", fix });
    });
    return found;
  });
}

interface Leak {
  pattern: RegExp;
  says: (match: string) => string;
  fix: string;
}

const LEAKS: Leak[] = [
  {
    pattern:
      /\b(?:registry|npm|artifactory|nexus|verdaccio)\.(?:[a-z0-9-]+\.)+[a-z]{2,}|\b[a-z0-9-]+\.jfrog\.io/i,
    says: (host) => `names the package registry ${host}.`,
    fix: "Remove it: everybody uses the registry their own npm is set to.",
  },
  {
    pattern: /"resolved": "https?:/,
    says: () => "records a download address.",
    fix: "Keep omit-lockfile-registry-resolved=true in .npmrc and write the lockfile again.",
  },
  {
    pattern: /(?<![\w.*-])\/(?:work|root|home\/[a-z][\w-]*|Users\/[A-Za-z][\w-]*)(?=[/\s"'`),:;]|$)/,
    says: (path) => `names the machine path ${path}.`,
    fix: "Write it relative to the repository, or take it from the environment.",
  },
];

/** What is committed works on every machine and tells nothing about the one it was written on. */
export function machineTraces(files: readonly TextFile[]): Finding[] {
  return files.flatMap(({ path, text }) =>
    text.split("\n").flatMap((content, index) =>
      LEAKS.flatMap(({ pattern, says, fix }) => {
        const match = pattern.exec(content);
        return match ? [{ path, line: index + 1, says: says(match[0]), fix }] : [];
      }),
    ),
  );
}
