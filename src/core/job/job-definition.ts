import { refuse, refuseUnknownKeys } from "../errors.ts";
import { type FairKeySource, parseFairKey } from "../fair/fair-options.ts";
import { type KeyedLimit, type LimitOptions, parseLimit } from "../limit/limit.ts";
import { keysOf } from "../option-keys.ts";
import type { Path } from "../redact.ts";
import { checkVersion, MOST_VERSIONS } from "../registry/registered-schema.ts";
import { type InputOf, isSchema, type Json, type OutputOf, type Schema } from "../schema.ts";
import { joinRedact, markedPaths, parseRedact, type RedactPath } from "./documents/redaction.ts";
import { parseUnique, type UniqueOptions, type UniqueRule } from "./enqueue/unique-key.ts";
import type { PolicySettings } from "./job.ts";
import { type PolicyOptions, parseSettings } from "./policy/policy.ts";

/** What producer and worker share: the name of a job, its typed payload and result, and its timeouts. */
export interface JobDefinition<Input = unknown, Payload = Input, Result = unknown, Parents = unknown> {
  readonly type: string;
  readonly queue: string;
  readonly priority: number;
  readonly payload: Schema<Input, Payload> | undefined;
  readonly result: Schema<unknown, Result> | undefined;
  readonly settings: PolicySettings;
  /** The limit that its jobs run under. */
  readonly limit: KeyedLimit | undefined;
  readonly unique: UniqueRule | undefined;
  /** The fair key of its jobs, or the function that computes it. */
  readonly fair: FairKeySource | undefined;
  /** What people must not see: the paths of `redact` and the marks of the schemas. */
  readonly redact: readonly Path[];
  /** The types of the jobs whose results it gets as a step of a workflow; one text stands for any number of them. */
  readonly parents: string | readonly string[] | undefined;
  /** The version of the schema that its jobs carry. */
  readonly version: string | undefined;
  /** The versions that its processors run; undefined for all. */
  readonly versions: readonly string[] | undefined;
  readonly [DEFINITION]: true;
  readonly [PARENTS]?: Parents;
}

const DEFINITION: unique symbol = Symbol("curfew.definition");
/** Only in the types: the results that its handler gets from the steps before it. */
declare const PARENTS: unique symbol;

export type AnyDefinition = JobDefinition<unknown, unknown, unknown>;

/** The arguments after a definition. The payload may be left out if undefined fits it. */
export type PayloadArgs<Input, Options> = undefined extends Input
  ? [payload?: NoInfer<Input>, options?: Options]
  : [payload: NoInfer<Input>, options?: Options];

/** The definitions of the steps before a step, in their order; or one definition for any number of them. */
export type Parents = AnyDefinition | readonly AnyDefinition[] | undefined;

type ResultOfJob<Definition> = Definition extends {
  readonly result: Schema<unknown, infer Result> | undefined;
}
  ? Result
  : never;

type ParentResults<T extends Parents> = T extends undefined
  ? unknown
  : T extends readonly AnyDefinition[]
    ? { readonly [Index in keyof T]: ResultOfJob<T[Index]> }
    : readonly ResultOfJob<T>[];

export interface DefinitionOptions<
  P extends Schema | undefined,
  R extends Schema | undefined,
  T extends Parents = undefined,
> extends PolicyOptions {
  /** Lower-case words joined by dots: `"card.charge"`. */
  readonly type: string;
  /** Any Standard Schema. The payload is checked when it is enqueued and parsed when it is processed. */
  readonly payload?: P;
  /** Any Standard Schema for what the processor returns. */
  readonly result?: R;
  readonly queue?: string;
  /** -100 (last) to 100 (first). Default 0. */
  readonly priority?: number;
  /** How many of its jobs may run at once or start per period, by a key: a text, or a function of the payload. */
  readonly limit?: LimitOptions<string | ((payload: InputBy<P>) => string)>;
  /** The fair key of its jobs: a text, or a function of the payload. In a fair queue each key has its turn. */
  readonly fair?: string | ((payload: InputBy<P>) => string);
  /** Refuses a second job while the first one counts; see `UniqueOptions`. */
  readonly unique?: UniqueOptions;
  /** What lists, dashboards, logs and errors must not show, such as `["payload.card.number"]`; see `RedactPath`. */
  readonly redact?: readonly RedactPath[];
  /**
   * The definitions of the steps before it in its workflows, which type `parentResults` of its handler: a list, or one
   * definition if any number of steps of that type may come before it. A workflow with other steps is refused.
   */
  readonly parents?: T;
  /** The version that its jobs carry, such as 2 or "1.4.0"; see `engine.schemas`. */
  readonly version?: number | string;
  /** The versions that its processors run. Jobs of other versions wait for another worker. Default: all. */
  readonly versions?: readonly (number | string)[];
}

type InputBy<P> = P extends Schema ? InputOf<P> : Json | undefined;
type PayloadBy<P> = P extends Schema ? OutputOf<P> : Json | undefined;
type ResultBy<R> = R extends Schema ? OutputOf<R> : Json | undefined;

const TYPE = /^[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*$/;
const QUEUE = /^[a-z0-9][a-z0-9.-]*$/;
const KEYS = keysOf<DefinitionOptions<undefined, undefined>>({
  type: true,
  payload: true,
  result: true,
  queue: true,
  priority: true,
  unique: true,
  parents: true,
  version: true,
  versions: true,
  limit: true,
  fair: true,
  redact: true,
  timeouts: true,
  retry: true,
  retention: true,
});

export const DEFAULT_QUEUE = "default";

/** Declares a job, for the process that enqueues it and the one that processes it. */
export function defineJob<
  P extends Schema | undefined = undefined,
  R extends Schema | undefined = undefined,
  const T extends Parents = undefined,
>(
  options: DefinitionOptions<P, R, T>,
): JobDefinition<InputBy<P>, PayloadBy<P>, ResultBy<R>, ParentResults<T>> {
  refuseUnknownKeys(options, "definition", KEYS);
  for (const name of ["payload", "result"] as const) {
    if (options[name] !== undefined && !isSchema(options[name])) {
      throw refuse(
        "invalid_option",
        name,
        options[name],
        "use a Standard Schema, for example one made with zod",
      );
    }
  }
  return Object.freeze({
    type: checkType(options.type, "type"),
    queue: checkQueue(options.queue ?? DEFAULT_QUEUE, "queue"),
    priority: checkPriority(options.priority ?? 0, "priority"),
    payload: options.payload as Schema<InputBy<P>, PayloadBy<P>> | undefined,
    result: options.result as Schema<unknown, ResultBy<R>> | undefined,
    settings: parseSettings(options, ""),
    limit: options.limit === undefined ? undefined : parseLimit(options.limit, "limit"),
    fair: options.fair === undefined ? undefined : parseFairKey(options.fair, "fair"),
    unique: options.unique === undefined ? undefined : parseUnique(options.unique, "unique"),
    redact: redactOf(options),
    parents: parentTypes(options.parents),
    version: options.version === undefined ? undefined : checkVersion(options.version),
    versions: options.versions === undefined ? undefined : checkVersions(options.versions),
    [DEFINITION]: true as const,
  });
}

function checkVersions(versions: readonly unknown[]): readonly string[] {
  if (!Array.isArray(versions) || versions.length === 0 || versions.length > MOST_VERSIONS)
    throw refuse(
      "invalid_option",
      "versions",
      versions,
      `list 1 to ${MOST_VERSIONS} versions, or leave it out for all`,
    );
  return Object.freeze(versions.map((version, index) => checkVersion(version, `versions[${index}]`)));
}

function redactOf({
  redact,
  payload,
  result,
}: Pick<DefinitionOptions<Schema | undefined, Schema | undefined>, "redact" | "payload" | "result">) {
  const marked = [...markedPaths(payload, "payload", "payload"), ...markedPaths(result, "result", "result")];
  return joinRedact(redact === undefined ? [] : parseRedact(redact, "redact"), marked);
}

function parentTypes(parents: Parents): JobDefinition["parents"] {
  if (parents === undefined) return undefined;
  if (!Array.isArray(parents)) return typeOf(parents, "parents");
  if (parents.length === 0)
    throw refuse("invalid_option", "parents", parents, "name at least one definition, or leave it out");
  return Object.freeze(parents.map((parent, index) => typeOf(parent, `parents[${index}]`)));
}

function typeOf(definition: unknown, field: string): string {
  assertDefinition(definition, field);
  return definition.type;
}

/** A schema that only carries a type, for payloads that come from trusted code or are checked elsewhere. */
export function unchecked<Value>(): Schema<Value, Value> {
  return { "~standard": { version: 1, vendor: "curfew", validate: (value) => ({ value: value as Value }) } };
}

export function isDefinition(value: unknown): value is AnyDefinition {
  return typeof value === "object" && value !== null && DEFINITION in value;
}

export function assertDefinition(value: unknown, field: string): asserts value is AnyDefinition {
  if (!isDefinition(value)) {
    throw refuse("invalid_definition", field, value, "pass what defineJob() returned");
  }
}

function checkName(name: string, field: string, most: number, pattern: RegExp, words: string): string {
  if (typeof name === "string" && name.length <= most && pattern.test(name)) return name;
  throw refuse("invalid_name", field, name, `use ${words}, at most ${most} characters`);
}

export function checkType(type: string, field: string): string {
  return checkName(type, field, 255, TYPE, 'lower-case words joined by dots, such as "card.charge"');
}

export function checkQueue(queue: string, field: string): string {
  return checkName(queue, field, 128, QUEUE, 'lower-case letters, digits, "-" and "."');
}

export function checkPriority(priority: number, field: string): number {
  if (!Number.isInteger(priority) || priority < -100 || priority > 100) {
    throw refuse("invalid_priority", field, priority, "use a whole number from -100 (last) to 100 (first)");
  }
  return priority;
}

/** A handler that is compiled for the results of its parents must not run without them. */
export function refuseAlone({ type, parents }: Pick<JobDefinition, "type" | "parents">): never {
  const fix = `its definition names parents (${[parents].flat().join(", ")}), so it runs only as a step after them: start a workflow`;
  throw refuse("invalid_definition", "definition", type, fix);
}
