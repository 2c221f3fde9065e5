import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Comment, type Node, parseSync } from "oxc-parser";

/** An interface whose options the page lists. */
interface Listed {
  readonly title: string;
  readonly intro: string;
  readonly path: string;
  readonly name: string;
}

const LISTED: readonly Listed[] = [
  {
    title: "openEngine(options)",
    intro: "`store` is the only one that you must name.",
    path: "src/open.ts",
    name: "OpenOptions",
  },
  {
    title: "engine.work(options)",
    intro: "Also of `client.work(options)`. `processors` is the only one that you must name.",
    path: "src/engine/worker/work-options.ts",
    name: "WorkOptions",
  },
  {
    title: "engine.workFor(options)",
    intro:
      "Also `processors`, `queues`, `middleware` and `maxStuck` of `engine.work`. [Serverless](guides/serverless.md) shows its use.",
    path: "src/engine/worker/work-for.ts",
    name: "WorkForOptions",
  },
  {
    title: "timeouts",
    intro: "[Timeouts](guides/timeouts.md) says what each of them does.",
    path: "src/core/job/policy.ts",
    name: "TimeoutOptions",
  },
  {
    title: "retry",
    intro: "[Retries](guides/retries.md) says how they work together.",
    path: "src/core/job/retry.ts",
    name: "RetryOptions",
  },
];

/** A table for each interface: names, types and comments as they stand in the code. */
export function optionTables(): string[] {
  return LISTED.map(({ title, intro, path, name }) => {
    const members = membersOf(path, name);
    const rows = members.map(({ key, type, says }) => `| \`${key}\` | ${code(type)} | ${says} |`);
    return `## ${title}\n\n${intro}\n\n| option | type | |\n|---|---|---|\n${rows.join("\n")}\n`;
  });
}

interface Member {
  readonly key: string;
  readonly type: string;
  readonly says: string;
}

/** The members of an interface, those that it inherits from PolicyOptions at the end. */
function membersOf(path: string, name: string): Member[] {
  const text = readFileSync(join(import.meta.dirname, "..", path), "utf8");
  const { program, comments } = parseSync(path, text);
  const found = program.body
    .map((node) => (node.type === "ExportNamedDeclaration" ? node.declaration : node))
    .find((node) => node?.type === "TSInterfaceDeclaration" && node.id.name === name);
  if (found?.type !== "TSInterfaceDeclaration") throw new Error(`${path} has no interface ${name}`);
  const own = found.body.body.map((member) => memberOf(member, text, comments, name));
  const inherits = found.extends.some(
    ({ expression }) => text.slice(expression.start, expression.end) === "PolicyOptions",
  );
  return inherits ? [...own, ...membersOf("src/core/job/policy.ts", "PolicyOptions")] : own;
}

function memberOf(member: Node, text: string, comments: readonly Comment[], name: string): Member {
  if (member.type !== "TSPropertySignature" || member.key.type !== "Identifier" || !member.typeAnnotation)
    throw new Error(`${name} has a member that is not a property with a type`);
  const { start, end } = member.typeAnnotation.typeAnnotation;
  const comment = comments.findLast((each) => each.end < member.start);
  const isNext = comment && text.slice(comment.end, member.start).trim() === "";
  if (!isNext) throw new Error(`${name}.${member.key.name} has no comment`);
  return { key: member.key.name, type: text.slice(start, end), says: sentence(comment.value) };
}

/** The text of a comment on one line. */
function sentence(comment: string): string {
  return comment
    .split("\n")
    .map((line) => line.replace(/^\s*\*+\s?/, "").trim())
    .join(" ")
    .replaceAll("|", "\\|")
    .trim();
}

function code(type: string): string {
  return `\`${type.replace(/readonly /g, "").replace(/\s+/g, " ")}\``.replaceAll("|", "\\|");
}
