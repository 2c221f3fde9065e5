import type { Node } from "oxc-parser";
import { type Finding, isTest, type Source, type TextFile, walk } from "./source.ts";

/** Words that never appear in an exported name, and what curfew says instead (docs/glossary.md). */
const BANNED: Record<string, string> = {
  task: "job",
  tasks: "jobs",
  perform: "processor",
  performer: "processor",
  nack: "settle or release",
  lock: "lease or fence",
  locks: "leases",
  locked: "claimed",
  unlock: "release",
  ping: "beat",
  touch: "beat",
  ttl: "timeout",
  expiry: "deadline or timeout",
  eta: "dueAt",
  rescue: "sweep or reap",
  maintain: "sweep, reap or prune",
  driver: "store",
  isolate: "sandbox",
  gate: "limit key, or what it checks",
  judge: "decide",
  fate: "decision or verdict",
  recess: "maintenance",
  rung: "source or settings",
  stencil: "job template",
  turnstile: "barrier job",
  patience: "what is waited for",
  keeper: "cleanup or holder",
  manager: "a name for what it does",
  helper: "a name for what it does",
  helpers: "names for what they do",
  util: "a name for what it does",
  utils: "names for what they do",
};

/** Good words in general, banned only next to these: `TimeoutKind` is fine, a job's kind is its type. */
const BANNED_PAIRS: Record<string, string> = {
  "job kind": "job type",
  "job data": "payload",
  "push job": "enqueue",
  "push jobs": "enqueue",
  "store client": "store",
  "engine client": "engine",
};

/** What PostgreSQL itself calls a lock is one. */
const ALLOWED_PAIRS = new Set(["advisory lock", "row lock", "table lock"]);

/** Temporal's own name for an instant's number, which instants are recognised by. */
const ALLOWED_UNITS = new Set(["epochMilliseconds"]);

/** A duration carries its unit in its value (`"30s"`), so a name never does. */
const UNITS = new Set(["ms", "millis", "milliseconds", "sec", "secs", "seconds", "minutes", "hours"]);

/** The wire speaks the words of Open Job Spec. */
const WIRE = ["src/ojs/"];

const GLOSSARY = "docs/glossary.md has one word per concept.";

/** `claimJobs` -> claim, jobs; `parseURLText` -> parse, url, text. Whole words, so `clock` holds no lock. */
export function wordsOf(name: string): string[] {
  return (name.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+/g) ?? []).map((word) => word.toLowerCase());
}

/** Exported names keep to the glossary: two words for one thing make readers look for the difference. */
export function glossary(sources: readonly Source[]): Finding[] {
  return sources.flatMap((source) => {
    const isWire = WIRE.some((folder) => source.path.startsWith(folder));
    if (!source.path.startsWith("src/") || isWire || isTest(source.path)) return [];
    return [...exportedNames(source), ...publicMembers(source)].flatMap(({ name, kind, start }) => {
      const problem = kind === "member" ? unitProblem(name) : nameProblem(name, kind);
      return problem ? [{ path: source.path, line: source.lineAt(start), ...problem }] : [];
    });
  });
}

interface Name {
  name: string;
  kind: "interface" | "member" | "other";
  start: number;
}

/** Names this file gives away itself; a re-export is judged where the name is made, unless it is renamed. */
function exportedNames({ module, program }: Source): Name[] {
  const interfaces = new Set<string>();
  walk(program, (node) => {
    if (node.type === "TSInterfaceDeclaration") interfaces.add(node.id.name);
  });
  return module.staticExports.flatMap(({ entries }) =>
    entries.flatMap(({ exportName, importName, moduleRequest, start }) => {
      if (exportName.name === null || (moduleRequest && exportName.name === importName.name)) return [];
      return [
        { name: exportName.name, kind: interfaces.has(exportName.name) ? "interface" : "other", start },
      ];
    }),
  );
}

/** Fields of exported interfaces and object types, where options live. */
function publicMembers({ program }: Source): Name[] {
  const found: Name[] = [];
  for (const statement of program.body) {
    if (statement.type !== "ExportNamedDeclaration" || !statement.declaration) continue;
    const { type } = statement.declaration;
    if (type !== "TSInterfaceDeclaration" && type !== "TSTypeAliasDeclaration") continue;
    walk(statement.declaration, (node: Node) => {
      if (node.type !== "TSPropertySignature" || node.key.type !== "Identifier") return;
      found.push({ name: node.key.name, kind: "member", start: node.start });
    });
  }
  return found;
}

function nameProblem(name: string, kind: Name["kind"]): { says: string; fix: string } | undefined {
  if (kind === "interface" && /^I[A-Z][a-z]/.test(name)) {
    return { says: `exports ${name}: no I prefix.`, fix: `Call it ${name.slice(1)}.` };
  }
  if (/^Base[A-Z]|[a-z]Base$/.test(name)) {
    return { says: `exports ${name}: no Base.`, fix: "Name what it is; prefer a function to a base class." };
  }
  const words = wordsOf(name);
  for (const [index, word] of words.entries()) {
    const pair = `${words[index - 1]} ${word}`;
    if (ALLOWED_PAIRS.has(pair)) continue;
    const instead = BANNED_PAIRS[pair] ?? (Object.hasOwn(BANNED, word) ? BANNED[word] : undefined);
    if (instead) return { says: `exports ${name}.`, fix: `Say ${instead}, not ${word}: ${GLOSSARY}` };
  }
  return unitProblem(name);
}

function unitProblem(name: string): { says: string; fix: string } | undefined {
  const words = wordsOf(name);
  const last = words.at(-1);
  if (words.length < 2 || last === undefined || !UNITS.has(last) || ALLOWED_UNITS.has(name)) return undefined;
  const fix = 'Drop the unit: a duration carries it in its value ("30s"), an instant is called xAt.';
  return { says: `has the public name ${name}, which ends in a unit.`, fix };
}

const CHECKED_FOLDERS = /^(src|test|web|bench|scripts|examples|docs|tools)\//;
const KEBAB = /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)*$/;
/** Names that tools and people look for: in capitals, and what Next.js calls a part of a path. */
const CONVENTIONAL = new Set(["README.md", "CHANGELOG.md", "[id]"]);

/** One way to write a file name, which also keeps file systems that ignore case out of trouble. */
export function fileNames(files: readonly Pick<TextFile, "path">[]): Finding[] {
  return files.flatMap(({ path }) => {
    if (!CHECKED_FOLDERS.test(path)) return [];
    const bad = path.split("/").find((part) => !KEBAB.test(part) && !CONVENTIONAL.has(part));
    if (bad === undefined) return [];
    return [
      { path, line: 1, says: `is not in kebab-case: ${bad}.`, fix: "Name the file after its main export." },
    ];
  });
}

/** Folders whose files are named after what they have in common with others: a store, a command, a route, a page. */
const SETS =
  /^src\/(stores|ports|dashboard|cli\/commands|server\/(routes|wire|calls)|testing\/conformance)\/|\/index\.ts$/;

/** A file name leads to one file, so that nobody opens the wrong one. */
export function uniqueNames(files: readonly Pick<TextFile, "path">[]): Finding[] {
  const first = new Map<string, string>();
  return files.flatMap(({ path }) => {
    if (!path.startsWith("src/") || SETS.test(path)) return [];
    const name = path.slice(path.lastIndexOf("/") + 1);
    const other = first.get(name);
    if (other === undefined) {
      first.set(name, path);
      return [];
    }
    return [
      { path, line: 1, says: `has the name of ${other}.`, fix: "Name the file after its main export." },
    ];
  });
}
