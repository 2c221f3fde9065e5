import { CurfewError, refuse, show } from "./errors.ts";
import { type Path, redactValue, scrubText, secretsIn } from "./redact.ts";
import { tagOf } from "./user-values.ts";

/** Values that survive JSON unchanged. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/**
 * The Standard Schema interface (standardschema.dev), so that zod, valibot, arktype and others work without an
 * adapter.
 */
export interface Schema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

export type InputOf<S> = S extends Schema<infer Input, unknown> ? Input : never;
export type OutputOf<S> =
  S extends Schema<never, infer Output> ? Output : S extends Schema<infer _I, infer Output> ? Output : never;

declare const NO_VALUE: unique symbol;
/** No value has this property, so no value fits these types. */
interface NoValue {
  readonly [NO_VALUE]: true;
}
interface NoObject extends NoValue {
  readonly [key: string]: Literal;
}
type Literal = NoObject | readonly Literal[] | (("" | 0 | false) & NoValue);

/**
 * What a function may return whose result is a `T`. Nothing fits the second part of this union: it makes the compiler keep the
 * literals in what the function returns, so that `{ status: "open" }` fits an enum. Without it, `status` would be a string.
 */
export type KeepsLiterals<T> = T | NoObject | (("" | 0 | false) & NoValue);

export function isSchema(value: unknown): value is Schema {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  const standard = (value as Partial<Schema>)["~standard"];
  return typeof standard === "object" && standard !== null && typeof standard.validate === "function";
}

/** The codes for a value that does not fit its schema. */
type Misfit = "invalid_payload" | "invalid_result" | "invalid_saga_state";

const NOTHING: readonly Path[] = [];

/** Validates synchronously if the schema is synchronous: the hot path must not pay for an await. */
export function validate<Output>(
  schema: Schema<never, Output> | Schema<unknown, Output>,
  value: unknown,
  field: string,
  code: Misfit,
  redact: readonly Path[] = NOTHING,
): Output | Promise<Output> {
  const result = schema["~standard"].validate(value);
  if (result instanceof Promise) return result.then((settled) => unwrap(settled, value, field, code, redact));
  return unwrap(result, value, field, code, redact);
}

function unwrap<Output>(
  result: SchemaResult<Output>,
  value: unknown,
  field: string,
  code: Misfit,
  redact: readonly Path[],
): Output {
  if (!result.issues) return result.value;
  const issue = result.issues[0];
  const path = (issue?.path ?? []).map((part) => String(typeof part === "object" ? part.key : part));
  const where = [field, ...path].join(".");
  const more = result.issues.length > 1 ? ` (and ${result.issues.length - 1} more)` : "";
  throw new CurfewError(
    code,
    `${where}: ${show(valueAt(redactValue(value, redact), path))} does not fit the schema; ${messageOf(issue, value, path, redact)}${more}`,
    { field: where },
  );
}

/** A message may quote the value, so nothing is said about a redacted one. */
function messageOf(
  issue: SchemaIssue | undefined,
  value: unknown,
  path: readonly string[],
  redact: readonly Path[],
): string {
  const isHidden = redact.some((hidden) =>
    hidden.every((name, index) => index < path.length && (name === "*" || name === path[index])),
  );
  if (isHidden) return "it is redacted, so the reason is not shown";
  return scrubText(issue?.message ?? "it is invalid", secretsIn(value, redact));
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  let at = value;
  for (const key of path)
    at = typeof at === "object" && at !== null ? (at as Record<string, unknown>)[key] : undefined;
  return at;
}

/** One megabyte of UTF-8. Larger documents belong in a blob store, with their address in the payload. */
export const DOCUMENT_LIMIT = 1_000_000;
/** The most characters of a line of a job's log, with its fields. */
export const LOG_LINE_LIMIT = 16_000;
/** The most lines of one attempt's log. The last of them says that lines were dropped. */
export const LOG_LINES_LIMIT = 1_000;
export const LOG_SIZE_LIMIT = 1_000_000;
const DEPTH_LIMIT = 1_000;

/**
 * The JSON text of a value. Refuses what is not JSON and names where. `undefined` properties are left out, as
 * TypeScript's optional fields expect. Everything else that JSON would silently change (NaN, Date, Map, undefined in
 * a list, class instances) is refused, because a job must not start with other data than was given.
 */
export function toJsonText(value: unknown, field: string, limit: number = DOCUMENT_LIMIT): string {
  const flaw = findFlaw(value, 0);
  if (flaw) throw refuse("not_json", `${field}${flaw.path}`, flaw.value, flaw.fix);
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) throw refuse("not_json", field, tagOf(value), "leave out its toJSON");
  if (text.length * 3 > limit && utf8Length(text) > limit) {
    throw refuse(
      "too_large",
      field,
      `${utf8Length(text)} bytes`,
      `keep it under ${limit} bytes: store the data elsewhere and put its address here`,
    );
  }
  return text;
}

/** What is not JSON, and where. The path is built only on the way back from a flaw, so valid values cost no strings. */
interface Flaw {
  path: string;
  readonly value: unknown;
  readonly fix: string;
}

function findFlaw(value: unknown, depth: number): Flaw | undefined {
  if (typeof value === "string" || typeof value === "boolean" || value === null) return undefined;
  if (typeof value === "number") {
    return Number.isFinite(value) ? undefined : { path: "", value, fix: "use a finite number or null" };
  }
  if (typeof value !== "object") {
    return { path: "", value, fix: "use null, booleans, numbers, strings, lists and plain objects" };
  }
  if (depth >= DEPTH_LIMIT) return { path: "", value: "…", fix: `nest at most ${DEPTH_LIMIT} levels` };
  if (!Array.isArray(value)) return findObjectFlaw(value, depth);
  for (let index = 0; index < value.length; index++) {
    const flaw = findFlaw(value[index], depth + 1);
    if (flaw) return at(`[${index}]`, flaw);
  }
  return undefined;
}

function findObjectFlaw(value: object, depth: number): Flaw | undefined {
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    return { path: "", value, fix: "use a plain object, or a string such as an ISO date" };
  }
  for (const key of Object.keys(value)) {
    // A careless copy of a document with a key named __proto__ would set the prototype of the copy.
    if (key === "__proto__") return { path: `.${key}`, value: key, fix: "rename this key" };
    const item = (value as Record<string, unknown>)[key];
    const flaw = item === undefined ? undefined : findFlaw(item, depth + 1);
    if (flaw) return at(`.${key}`, flaw);
  }
  return undefined;
}

/** Prepends one step to a flaw's path. Only the first 200 characters stay, so that a deep flaw is readable. */
function at(step: string, flaw: Flaw): Flaw {
  flaw.path = `${step}${flaw.path}`.slice(0, 200);
  return flaw;
}

function utf8Length(text: string): number {
  let bytes = 0;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit < 0x80) bytes += 1;
    else if (unit < 0x800) bytes += 2;
    else if (unit >= 0xd800 && unit <= 0xdbff) {
      bytes += 4;
      index++;
    } else bytes += 3;
  }
  return bytes;
}
