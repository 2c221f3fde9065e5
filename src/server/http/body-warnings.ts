import type { z } from "zod";
import { nearestName } from "../../core/nearest-name.ts";
import type { PlainHeaders } from "./http-error.ts";

/** Something in a body that has no effect. */
export interface BodyWarning {
  readonly code: "unknown_field" | "no_effect" | "unknown_version";
  readonly field: string;
  readonly message: string;
}

/** The objects and lists that a schema describes. */
interface Shape {
  /** Fields of its objects, with their schemas. */
  readonly fields: ReadonlyMap<string, readonly z.ZodType[]>;
  /** Of the entries of its lists. */
  readonly entries: readonly z.ZodType[];
  /** Of the values of its records. */
  readonly values: readonly z.ZodType[];
  /** The shapes of fields, made on first use: a schema may contain itself. */
  readonly inner: Map<string, Shape | null>;
}

/** Names of other job systems, and the fields that do the same here. */
const OTHER_NAMES: Readonly<Record<string, readonly string[]>> = {
  retries: ["retry", "max_attempts"],
  max_retries: ["retry.max_attempts", "max_attempts"],
  attempts: ["retry.max_attempts", "max_attempts"],
  max_attempts: ["retry.max_attempts"],
  backoff: ["retry.backoff_strategy", "backoff_strategy"],
  ttl: ["enqueue_ttl"],
  deadline: ["total_timeout"],
  delay: ["scheduled_at"],
  run_at: ["scheduled_at"],
};

/** The same, but short words: only these letters mean them. */
const SHORT_NAMES: Readonly<Record<string, readonly string[]>> = {
  grace: ["grace_period"],
  heartbeat: ["heartbeat_timeout"],
  visibility: ["visibility_timeout_ms"],
  prio: ["priority"],
  start_at: ["scheduled_at"],
};

/** Units at the end of a name. Fields without a unit are in seconds. */
const UNIT = /_(?:s|secs?|seconds?|ms|millis|milliseconds?)$/;

const MOST_WARNINGS = 10;
/** Unknown names of one request that are compared: a comparison costs more than a lookup. */
const MOST_COMPARED = 100;
/** Names that belong to extensions and to users. */
const FREE = /^(?:x|ext)[_-]|^\$/;

const shapes = new WeakMap<z.ZodType, Shape | null>();

/**
 * Warnings about the fields of a body. A job keeps unknown fields, so only those are named that look like a known one. A
 * setting keeps none, so with `isSetting` each of them is named.
 */
export function warningsOn(schema: z.ZodType, body: unknown, isSetting = false): readonly BodyWarning[] {
  if (typeof body !== "object" || body === null) return [];
  const walk: Walk = { warnings: [], compared: 0, keepsNone: isSetting };
  look(shapeOf(schema), body, "", walk);
  return walk.warnings;
}

interface Walk {
  readonly warnings: BodyWarning[];
  compared: number;
  /** Whether unknown fields are dropped where the walk is. */
  keepsNone: boolean;
}

/** Jobs inside of settings: they keep what they do not know. */
const JOBS_WITHIN = new Set(["job_template", "options"]);

/** `around` is the shape of the object whose `options` are looked at. */
function look(
  shape: Shape | null,
  value: unknown,
  at: string,
  walk: Walk,
  around: Shape | null = null,
): void {
  if (!shape || typeof value !== "object" || value === null || walk.warnings.length >= MOST_WARNINGS) return;
  if (Array.isArray(value)) {
    const entry = innerOf(shape, "[]", shape.entries);
    if (entry)
      for (let index = 0; index < value.length; index++) look(entry, value[index], `${at}${index}.`, walk);
    return;
  }
  for (const name of Object.keys(value)) {
    const known = shape.fields.get(name) ?? (shape.values.length > 0 ? shape.values : undefined);
    const inner = (value as Record<string, unknown>)[name];
    if (known) {
      if (typeof inner !== "object" || inner === null) continue;
      const shapeWithin = innerOf(shape, shape.fields.has(name) ? name : "{}", known);
      const { keepsNone } = walk;
      if (JOBS_WITHIN.has(name)) walk.keepsNone = false;
      look(shapeWithin, inner, `${at}${name}.`, walk, name === "options" ? shape : null);
      walk.keepsNone = keepsNone;
    } else if (shape.fields.size > 0) compare(shape, name, at, walk, around);
  }
}

function compare(shape: Shape, name: string, at: string, walk: Walk, around: Shape | null): void {
  if (walk.warnings.length >= MOST_WARNINGS || ++walk.compared > MOST_COMPARED || FREE.test(name)) return;
  const meant = around?.fields.has(name)
    ? `${name} beside options`
    : (meantBy(name, shape.fields) ?? elsewhere(name, shape));
  if (meant === undefined && !walk.keepsNone) return;
  const field = `${at}${name}`;
  const fix = meant === undefined ? "" : `; did you mean ${meant}?`;
  const message = `${field}: it is not known and has no effect${fix}`;
  walk.warnings.push({ code: "unknown_field", field, message });
}

/** An option that was written beside `options`, or beside the list of jobs. Nothing reads it there. */
function elsewhere(name: string, shape: Shape): string | undefined {
  const own = insideOf(shape, "options");
  const meant = own && meantBy(name, own.fields);
  if (meant) return `options.${meant}`;
  if (insideOf(shape, "callbacks")?.fields.has(name)) return `callbacks.${name}`;
  const jobs = insideOf(shape, "jobs");
  const each = jobs && innerOf(jobs, "[]", jobs.entries);
  const ofEach = each && meantBy(name, each.fields);
  return ofEach ? `${ofEach} of each job` : undefined;
}

function insideOf(shape: Shape, name: string): Shape | null {
  const schemas = shape.fields.get(name);
  return schemas ? innerOf(shape, name, schemas) : null;
}

function meantBy(name: string, fields: Shape["fields"]): string | undefined {
  const spelled = name.replaceAll("-", "_").replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  if (fields.has(spelled)) return spelled;
  const other = (said: string) => {
    const targets = [OTHER_NAMES, SHORT_NAMES].find((names) => Object.hasOwn(names, said))?.[said];
    return targets?.find((target) => fields.has(target.split(".")[0] as string));
  };
  const exact = other(spelled) ?? inUnits(spelled, fields) ?? other(spelled.replace(UNIT, ""));
  if (exact !== undefined) return exact;
  const others = Object.keys(OTHER_NAMES).filter((said) => other(said) !== undefined);
  const near = nearestName(spelled, [...fields.keys(), ...others]);
  return near === undefined || fields.has(near) ? near : other(near);
}

/** The field of a name with another unit: `timeout_seconds` is `timeout`, and `timeout_millis` is `timeout_ms`. */
function inUnits(spelled: string, fields: Shape["fields"]): string | undefined {
  const unit = UNIT.exec(spelled)?.[0];
  if (unit === undefined) return undefined;
  const bare = spelled.slice(0, -unit.length);
  return [...(unit.startsWith("_m") ? [`${bare}_ms`] : []), bare].find((name) => fields.has(name));
}

function innerOf(shape: Shape, name: string, schemas: readonly z.ZodType[]): Shape | null {
  const known = shape.inner.get(name);
  if (known !== undefined) return known;
  const [only] = schemas;
  const made = schemas.length === 1 && only ? shapeOf(only) : merged(schemas);
  shape.inner.set(name, made);
  return made;
}

function shapeOf(schema: z.ZodType): Shape | null {
  const known = shapes.get(schema);
  if (known !== undefined) return known;
  const made = merged([schema]);
  shapes.set(schema, made);
  return made;
}

/** One shape for all alternatives; null if they describe neither fields nor anything with fields. */
function merged(schemas: readonly z.ZodType[]): Shape | null {
  const fields = new Map<string, z.ZodType[]>();
  const entries: z.ZodType[] = [];
  const values: z.ZodType[] = [];
  for (const schema of schemas.flatMap(plain)) {
    const def = defOf(schema);
    if (def.type === "array" && def.element) entries.push(def.element);
    if (def.type === "record" && def.valueType) values.push(def.valueType);
    if (def.type !== "object") continue;
    for (const [name, inner] of Object.entries(def.shape ?? {})) {
      const others = fields.get(name);
      if (others) others.push(inner);
      else fields.set(name, [inner]);
    }
  }
  if (fields.size + entries.length + values.length === 0) return null;
  return { fields, entries, values, inner: new Map() };
}

interface Def {
  readonly type: string;
  readonly shape?: Readonly<Record<string, z.ZodType>>;
  readonly element?: z.ZodType;
  readonly valueType?: z.ZodType;
  readonly innerType?: z.ZodType;
  readonly options?: readonly z.ZodType[];
  readonly out?: z.ZodType;
  readonly getter?: () => z.ZodType;
}

const defOf = (schema: z.ZodType) => schema.def as unknown as Def;

/** A schema without its wrappers; the alternatives of a union. */
function plain(schema: z.ZodType): readonly z.ZodType[] {
  const def = defOf(schema);
  if (def.innerType) return plain(def.innerType);
  if (def.options) return def.options.flatMap(plain);
  if (def.type === "pipe" && def.out) return plain(def.out);
  if (def.type === "lazy" && def.getter) return plain(def.getter());
  return [schema];
}

/** The reply of a route that found something without effect itself; the first ten are named. */
export function warned<Replied extends Parameters<typeof withWarnings>[0]>(
  reply: Replied,
  warnings: readonly BodyWarning[],
): Replied {
  return warnings.length === 0 ? reply : withWarnings(reply, warnings.slice(0, MOST_WARNINGS));
}

/** The reply with its warnings: as a field, and for clients that read only heads as a header. */
export function withWarnings<
  Replied extends { readonly text: string | null; readonly headers?: PlainHeaders },
>(reply: Replied, warnings: readonly BodyWarning[]): Replied {
  const before = reply.headers?.["OJS-Warning"];
  const header = [...warnings.map(({ message }) => message), ...(before ? [before] : [])].join(" | ");
  const headers = { ...reply.headers, "OJS-Warning": header.replace(/[^\x20-\x7e]/g, "?").slice(0, 2_000) };
  const { text } = reply;
  if (text === null || !text.startsWith("{")) return { ...reply, headers };
  // The route may have warnings of its own.
  const own = text.includes('"warnings":') ? (JSON.parse(text) as { readonly warnings?: unknown }) : {};
  if (Array.isArray(own.warnings))
    return { ...reply, headers, text: JSON.stringify({ ...own, warnings: [...warnings, ...own.warnings] }) };
  const said = `${JSON.stringify({ warnings }).slice(0, -1)}${text === "{}" ? "" : ","}`;
  return { ...reply, headers, text: said + text.slice(1) };
}
