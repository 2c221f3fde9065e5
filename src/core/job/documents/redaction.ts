import { refuse } from "../../errors.ts";
import { type Path, redactValue, scrubText, scrubValue, secretsIn } from "../../redact.ts";
import type { Json, Schema } from "../../schema.ts";
import type { ErrorCause, JobOptions, JobRow, JsonText } from "../job.ts";

/**
 * What is redacted: `"payload.card.number"`, with `*` for every item or field, such as `"payload.items.*.token"`. The
 * first word is the document: payload, result, checkpoint, meta or parentResults. A list where a name has a dot.
 */
export type RedactPath = string | readonly (string | number)[];

const DOCUMENTS = ["payload", "result", "checkpoint", "meta", "parentResults"] as const;
type Document = (typeof DOCUMENTS)[number];

/** The most paths of a job: they are stored with each of its jobs. */
const MOST_PATHS = 50;
const LONGEST_PATH = 500;
const MOST_NAMES = 20;

const FIX = `write a path such as "payload.card.number" or "payload.items.*.token"; it begins with ${DOCUMENTS.join(", ")}`;

/** Checks a list of paths. Equal ones are joined. */
export function parseRedact(value: unknown, field: string): readonly Path[] {
  if (!Array.isArray(value)) throw refuse("invalid_option", field, value, `write a list; ${FIX}`);
  return joined(
    value.map((path, index) => parsePath(path, `${field}[${index}]`)),
    field,
  );
}

function parsePath(value: unknown, field: string): Path {
  const names = typeof value === "string" ? value.split(".") : value;
  const isPath =
    Array.isArray(names) &&
    names.length <= MOST_NAMES &&
    names.every((name) => (typeof name === "string" && name !== "") || Number.isInteger(name)) &&
    names.join(".").length <= LONGEST_PATH &&
    DOCUMENTS.includes(names[0]);
  if (isPath) return names.map(String);
  throw refuse("invalid_option", field, value, FIX);
}

/** Lists of paths as one, without repetitions. */
function joined(paths: readonly Path[], field: string): readonly Path[] {
  const byText = new Map(paths.map((path) => [JSON.stringify(path), path]));
  if (byText.size > MOST_PATHS)
    throw refuse(
      "invalid_option",
      field,
      `${byText.size} paths`,
      `use at most ${MOST_PATHS}; a path may name a whole object, or all its fields with *`,
    );
  return [...byText.values()];
}

/** The paths of an enqueue and of its definition together. */
export function joinRedact(defined: readonly Path[], said: readonly Path[]): readonly Path[] {
  return said.length === 0 ? defined : joined([...defined, ...said], "options.redact");
}

/** Paths as they are written, for replies. */
export function redactTexts(paths: readonly Path[]): readonly (string | Path)[] {
  return paths.map((path) => (path.some((name) => name.includes(".")) ? path : path.join(".")));
}

interface JsonSchemaSource {
  readonly jsonSchema?: { readonly input?: (options: object) => unknown };
}

/**
 * The paths that a schema marks with `redact: true` in its JSON schema, as zod's `.meta({ redact: true })` does. A schema
 * of a library that offers no JSON schema (standardschema.dev/json-schema) has no marks that can be read.
 */
export function markedPaths(schema: Schema | undefined, document: Document, field: string): readonly Path[] {
  const source = schema?.["~standard"] as JsonSchemaSource | undefined;
  if (typeof source?.jsonSchema?.input !== "function") return [];
  let root: unknown;
  try {
    root = source.jsonSchema.input({
      target: "draft-2020-12",
      libraryOptions: { unrepresentable: "any" },
    });
  } catch {
    // The library cannot write this schema as JSON.
    return [];
  }
  const paths: Path[] = [];
  findMarks(root, [document], { root, paths, field }, 0);
  return paths;
}

interface Marks {
  readonly root: unknown;
  readonly paths: Path[];
  readonly field: string;
}

/** References of a recursive schema are followed this deep. */
const DEEPEST = 30;

function findMarks(schema: unknown, path: Path, marks: Marks, depth: number): void {
  if (typeof schema !== "object" || schema === null || depth > DEEPEST || path.length > MOST_NAMES) return;
  const node = schema as Record<string, unknown>;
  if (node.redact === true) {
    marks.paths.push(path);
    if (marks.paths.length > 10 * MOST_PATHS) joined(marks.paths, marks.field);
    return;
  }
  const visit = (inner: unknown, ...names: string[]) =>
    findMarks(inner, [...path, ...names], marks, depth + 1);
  if (typeof node.$ref === "string") visit(referred(marks.root, node.$ref));
  for (const [name, inner] of Object.entries((node.properties as object | undefined) ?? {}))
    visit(inner, name);
  if (node.additionalProperties !== undefined) visit(node.additionalProperties, "*");
  for (const inner of Object.values((node.patternProperties as object | undefined) ?? {})) visit(inner, "*");
  if (node.items !== undefined) visit(node.items, "*");
  for (const [index, inner] of Object.entries((node.prefixItems as object | undefined) ?? {}))
    visit(inner, index);
  for (const name of ["anyOf", "oneOf", "allOf"])
    for (const inner of Object.values((node[name] as object | undefined) ?? {})) visit(inner);
}

/** What `#/$defs/name` or `#` refers to. */
function referred(root: unknown, ref: string): unknown {
  if (!ref.startsWith("#")) return undefined;
  return ref
    .split("/")
    .slice(1)
    .reduce<unknown>(
      (at, name) =>
        typeof at === "object" && at !== null ? (at as Record<string, unknown>)[name] : undefined,
      root,
    );
}

/** The paths within one document. */
export function pathsWithin(paths: readonly Path[] | undefined, document: Document): readonly Path[] {
  if (paths === undefined) return [];
  return paths.filter(([name]) => name === document).map((path) => path.slice(1));
}

/** A job as people may see it. Workers get the row itself. Most jobs have nothing to hide and stay as they are. */
export function visibleRow<Row extends Pick<JobRow, "options" | "payload" | "result" | "checkpoint">>(
  row: Row,
): Row {
  const redact = row.options?.redact;
  if (redact === undefined) return row;
  const { payload, result, checkpoint } = row;
  return {
    ...row,
    payload: visiblePayload({ payload, options: row.options }),
    result: result === null ? null : visibleText(result, redact, "result"),
    checkpoint: checkpoint === null ? null : visibleText(checkpoint, redact, "checkpoint"),
    options: visibleOptions(row.options as JobOptions, redact),
  };
}

/** The payload of a job as people may see it. */
export function visiblePayload({ payload, options }: Pick<JobRow, "payload" | "options">): JsonText {
  const paths = payloadPaths(options);
  return paths.length === 0 ? payload : JSON.stringify(redactValue(exactValue(payload), paths));
}

/** The redacted paths in a payload. A list of arguments stays a list, so each of them is hidden instead of all at once. */
export function payloadPaths(options: JobOptions | null): readonly Path[] {
  const paths = pathsWithin(options?.redact, "payload");
  const isSpread = options?.wire?.spread === true;
  return isSpread ? paths.map((path) => (path.length === 0 ? ["*"] : path)) : paths;
}

/** Options of a job, a cron or a delayed job as people may see them. */
export function visibleOptions<Options extends Pick<JobOptions, "meta" | "parentResults">>(
  options: Options,
  redact: readonly Path[],
): Options {
  const { meta, parentResults } = options;
  const within = pathsWithin(redact, "meta");
  return {
    ...options,
    ...(meta && within.length > 0 && { meta: redactValue(meta, within) }),
    ...(parentResults && { parentResults: visibleText(parentResults, redact, "parentResults") }),
  };
}

/** A document as people may see it. */
export function visibleText(
  text: JsonText,
  redact: readonly Path[] | undefined,
  document: Document,
): JsonText {
  const paths = pathsWithin(redact, document);
  return paths.length === 0 ? text : JSON.stringify(redactValue(exactValue(text), paths));
}

/** JSON.rawJSON and the source of a value are newer than the types. */
const EXACT = JSON as unknown as {
  rawJSON(text: string): object;
  parse(text: string, revive: (key: string, value: unknown, of: { source?: string }) => unknown): unknown;
};

/** Parses a document. Numbers that JavaScript would write in other digits keep theirs. */
function exactValue(text: JsonText): unknown {
  return EXACT.parse(text, (_key, value, { source }) =>
    typeof value === "number" && source !== undefined && source !== String(value)
      ? EXACT.rawJSON(source)
      : value,
  );
}

const secretsByRow = new WeakMap<object, readonly string[]>();

/** The values of a job that must not stand in its errors, log lines and notes. */
function secretsOf(row: Pick<JobRow, "options" | "payload">): readonly string[] {
  const redact = row.options?.redact;
  if (redact === undefined) return [];
  const known = secretsByRow.get(row);
  if (known) return known;
  const { meta, parentResults } = row.options ?? {};
  const secrets = [
    ...secretsIn(JSON.parse(row.payload), pathsWithin(redact, "payload")),
    ...secretsIn(meta, pathsWithin(redact, "meta")),
    ...secretsIn(JSON.parse(parentResults ?? "[]"), pathsWithin(redact, "parentResults")),
  ];
  secretsByRow.set(row, secrets);
  return secrets;
}

interface Told extends ErrorCause {
  readonly cause?: ErrorCause;
  readonly details?: Json;
}

/** An error of a job without the redacted values that its texts quote. */
export function scrubError<Failure extends Told>(
  error: Failure,
  row: Pick<JobRow, "options" | "payload">,
): Failure {
  const secrets = secretsOf(row);
  return secrets.length === 0 ? error : (scrubValue(error, secrets) as Failure);
}

/** A note of an attempt (a log line, progress) without the redacted values that it quotes. */
export function scrubNote<Note>(note: Note, row: Pick<JobRow, "options" | "payload">): Note {
  const secrets = secretsOf(row);
  return secrets.length === 0 ? note : (scrubValue(note, secrets) as Note);
}

/** The same for a text. */
export function scrubWords(text: string, row: Pick<JobRow, "options" | "payload">): string {
  return scrubText(text, secretsOf(row));
}
