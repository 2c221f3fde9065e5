import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type Comment,
  type EcmaScriptModule,
  type Node,
  type Program,
  parseSync,
  visitorKeys,
} from "oxc-parser";

/** One thing that is not as it should be: where it stands, what is wrong, and what to do about it. */
export interface Finding {
  path: string;
  line: number;
  says: string;
  fix: string;
}

/** A file as text; every tracked file is one, whatever it holds. */
export interface TextFile {
  path: string;
  text: string;
}

/** A parsed TypeScript file. Rules read the syntax tree, so comments and strings can never trip them. */
export interface Source extends TextFile {
  program: Program;
  module: EcmaScriptModule;
  comments: Comment[];
  lineAt(offset: number): number;
}

export function parse({ path, text }: TextFile): Source {
  const { program, module, comments, errors } = parseSync(path, text);
  if (errors[0]) throw new Error(`${path} cannot be parsed: ${errors[0].message}`);
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  const lineAt = (offset: number) => {
    const next = starts.findIndex((start) => start > offset);
    return next < 0 ? starts.length : next;
  };
  return { path, text, program, module, comments, lineAt };
}

/** Visits every node below `node`, parents before children, with the chain of parents (nearest first). */
export function walk(
  node: Node,
  visit: (node: Node, parents: readonly Node[]) => void,
  parents: readonly Node[] = [],
) {
  visit(node, parents);
  const chain = [node, ...parents];
  for (const key of visitorKeys[node.type] ?? []) {
    const child: unknown = node[key as keyof typeof node];
    for (const each of Array.isArray(child) ? child : [child]) {
      if (each) walk(each as Node, visit, chain);
    }
  }
}

/** The root of the repository. */
const root = join(import.meta.dirname, "..", "..");

/** All files that are or would be committed, so that a mistake is found before the commit and not after it. */
export function readTree(): TextFile[] {
  const listing = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
  });
  return listing
    .split("\0")
    .filter((path) => path !== "")
    .flatMap((path) => {
      const text = readOrUndefined(join(root, path));
      return text === undefined || text.includes("\0") ? [] : [{ path, text }];
    });
}

/** A file deleted but still in the index is listed and cannot be read; the next commit drops it. */
function readOrUndefined(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

const PARSED_FOLDERS = /^(src|test|web|bench|scripts|examples)\//;

export function parseTree(files: readonly TextFile[]): Source[] {
  return files.filter(({ path }) => PARSED_FOLDERS.test(path) && /\.tsx?$/.test(path)).map(parse);
}

export function isTest(path: string): boolean {
  return /\.test(-d)?\.tsx?$/.test(path);
}

/** The findings as the failing test shows them: one line for what is wrong, one for the way out. */
export function report(findings: readonly Finding[]): string {
  return findings.map(({ path, line, says, fix }) => `${path}:${line} ${says}\n    ${fix}`).join("\n");
}
