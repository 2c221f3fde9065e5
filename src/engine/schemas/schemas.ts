import { type By, parseBy } from "../../core/audit/audit-entry.ts";
import { canonicalJson } from "../../core/canonical-json.ts";
import { CurfewError, checkCount, refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { type AnyDefinition, assertDefinition, checkType } from "../../core/job/job-definition.ts";
import {
  type Compatibility,
  checkCompatibility,
  incompatibilities,
} from "../../core/registry/compatibility.ts";
import { argsSchemaOf } from "../../core/registry/definition-schema.ts";
import { checkJsonSchema, type JsonSchema } from "../../core/registry/json-schema.ts";
import {
  checkUri,
  checkVersion,
  compareVersions,
  MOST_SCHEMAS,
  MOST_VERSIONS,
  newestOf,
  type SchemaIndex,
  type TypeEntry,
  VALIDATIONS,
  type Validation,
  type VersionEntry,
  versionFor,
  versionOf,
} from "../../core/registry/registered-schema.ts";
import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import { BATCH_LIMIT } from "../../ports/store.ts";
import { changeRecord, type RecordChange } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";
import { auditEffects } from "../events/audit-log.ts";
import { ALL_TYPES, SCHEMA_INDEX, SCHEMAS, schemaName } from "./schema-records.ts";
import { type Misfit, validators } from "./validator.ts";

export interface SchemaOptions {
  /** How it must fit the version before it. Default: as the type says, `none` for the first one. */
  readonly compatibility?: Compatibility;
  /** Which jobs of the type are checked. Default: as the type says, `named` for the first one. */
  readonly validation?: Validation;
  /** The name that jobs may give in `schema`. */
  readonly uri?: string;
}

export interface SchemaSummary {
  readonly type: string;
  readonly newest: string;
  readonly versions: readonly string[];
  readonly validation: Validation;
  readonly compatibility: Compatibility;
}

export interface SchemaView extends VersionEntry {
  readonly type: string;
  readonly schema: JsonSchema;
  readonly validation: Validation;
  readonly compatibility: Compatibility;
}

/** A version or uri that a job names, and that its type does not have. */
export interface UnknownVersion {
  readonly field: "version" | "schema";
  readonly value: unknown;
  /** The version that the job is checked against all the same; undefined if it is not checked. */
  readonly checked: string | undefined;
  readonly versions: readonly string[];
}

export interface PublishedSchema {
  readonly type: string;
  readonly version: string;
  /** False if the newest version is the same already. */
  readonly isNew: boolean;
}

const EMPTY: SchemaIndex = { types: {} };
/** The rules of a type whose schema is published. */
const FIRST = { compatibility: "backward", validation: "always" } as const;

/** Schemas of the arguments of jobs, by type and version, shared by all processes. */
export class Schemas {
  readonly #context: EngineContext;
  readonly #by: By | undefined;

  constructor(context: EngineContext, by?: By) {
    this.#context = context;
    this.#by = by;
  }

  /** The same schemas; each change writes an audit entry for this operator. */
  as(by: By): Schemas {
    return new Schemas(this.#context, parseBy(by));
  }

  /**
   * Registers a version. It holds at once in this process, and within five seconds in others. A known version and one
   * that breaks the compatibility are refused.
   */
  async put(
    type: string,
    version: string | number,
    schema: unknown,
    options: SchemaOptions = {},
  ): Promise<SchemaView> {
    this.#context.assertOpen();
    refuseUnknownKeys(options, "options", ["compatibility", "validation", "uri"]);
    const name = checkVersion(version);
    const made = checkJsonSchema(schema);
    (await validators())(made);
    const uri = checkUri(options.uri, checkType(type, "type"), name);
    const before = await this.#before(type, name);
    let now: Instant = 0;
    await this.#change("put", (index, at) => {
      now = at;
      const entry = entryWith(entryOf(index, type), options);
      refuseKnown(index, type, name, uri);
      const older = olderThan(entry.versions, name);
      if (older?.version !== before?.version) throw changedMeanwhile(type);
      if (before) this.#refuseBreaks(type, name, before, made, entry.compatibility);
      const versions = [...entry.versions, { version: name, uri, at }].sort((a, b) =>
        compareVersions(a.version, b.version),
      );
      return {
        index: withType(index, type, { ...entry, versions }),
        effects: [SCHEMAS.put(schemaName(type, name), { schema: made }, null)],
        audit: ["schema.put", { type, version: name }],
      };
    });
    const { validation, compatibility } =
      this.#context.schemas.types.get(type) ?? entryWith(undefined, options);
    return { type, version: name, uri, at: now, schema: made, validation, compatibility };
  }

  /** Changes which jobs of a type are checked, and how its next version must fit. */
  async configure(type: string, options: Pick<SchemaOptions, "compatibility" | "validation">): Promise<void> {
    this.#context.assertOpen();
    refuseUnknownKeys(options, "options", ["compatibility", "validation"]);
    await this.#change("configure", (index) => {
      const entry = entryOf(index, type);
      if (!entry) throw unknownSchema(type);
      const audit = ["schema.configure", { type, ...options }] as const;
      return { index: withType(index, type, entryWith(entry, options)), effects: [], audit };
    });
  }

  /** Deletes a version. Its jobs are not checked any more, unless every job of the type is. */
  async remove(type: string, version: string | number): Promise<void> {
    this.#context.assertOpen();
    const name = checkVersion(version);
    await this.#change("remove", (index) => {
      const entry = entryOf(index, type);
      const versions = entry?.versions.filter((each) => each.version !== name) ?? [];
      if (!entry || versions.length === entry.versions.length) throw unknownSchema(type, name);
      return {
        index: withType(index, type, versions.length === 0 ? null : { ...entry, versions }),
        effects: [SCHEMAS.remove(schemaName(type, name))],
        audit: ["schema.remove", { type, version: name }],
      };
    });
  }

  /** The newest version, or the one that is named; null if there is none. */
  async get(type: string, version?: string | number): Promise<SchemaView | null> {
    const entry = entryOf(await this.#index(), type);
    const name = version === undefined ? undefined : checkVersion(version);
    const found =
      entry && (name === undefined ? newestOf(entry) : entry.versions.find((each) => each.version === name));
    const record = found && (await SCHEMAS.load(this.#context.store, schemaName(type, found.version)));
    if (!record) return null;
    const { validation, compatibility } = entry;
    return { type, ...found, schema: record.body.schema, validation, compatibility };
  }

  /** The version with this uri; null if there is none. */
  async byUri(uri: string): Promise<SchemaView | null> {
    for (const [type, { versions }] of Object.entries((await this.#index()).types)) {
      const found = versions.find((each) => each.uri === uri);
      if (found) return this.get(type, found.version);
    }
    return null;
  }

  /** Types with schemas by name; `after` is the last type of the page before. */
  async list(
    page: { readonly after?: string; readonly from?: string; readonly limit?: number } = {},
  ): Promise<SchemaSummary[]> {
    refuseUnknownKeys(page, "page", ["after", "from", "limit"]);
    const { after = "", from = "", limit = 100 } = page;
    checkCount(limit, "page.limit", BATCH_LIMIT);
    const { types } = await this.#index();
    const names = Object.keys(types)
      .sort()
      .filter((type) => type > after && type >= from);
    return names.slice(0, limit).map((type) => summaryOf(type, types[type] as TypeEntry));
  }

  /** Why a schema is not compatible with the newest version of its type; empty if it is. Stores nothing. */
  async check(type: string, schema: unknown, mode?: Compatibility): Promise<string[]> {
    const made = checkJsonSchema(schema);
    (await validators())(made);
    const newest = await this.get(type);
    if (!newest) return [];
    const compatibility =
      mode === undefined ? newest.compatibility : checkCompatibility(mode, "compatibility");
    return incompatibilities(newest.schema, made, compatibility);
  }

  /** What does not fit a version, or the newest one; null if all does. */
  async validate(type: string, args: readonly Json[], version?: string | number): Promise<Misfit | null> {
    await this.#context.schemas.refresh();
    const entry = this.#context.schemas.types.get(type);
    if (!entry) throw unknownSchema(type);
    const name = version === undefined ? newestOf(entry).version : checkVersion(version);
    return this.#context.schemas.misfit(type, name, args);
  }

  /**
   * The version or uri that a job names though its type, which has schemas, does not have it; null if all is well. Looks
   * at what this process knows, so it needs no read.
   */
  unknownVersion(
    type: string,
    said: { readonly version?: unknown; readonly schema?: unknown } | undefined,
  ): UnknownVersion | null {
    const entry = this.#context.schemas.types.get(type);
    if (!entry || !said) return null;
    const { version, schema } = said;
    const versions = entry.versions.map((each) => each.version);
    const hasVersion = version == null || versions.includes(versionOf(version) ?? "");
    const hasUri = schema == null || entry.versions.some(({ uri }) => uri === schema);
    if (hasVersion && hasUri) return null;
    const wrong = hasVersion
      ? ({ field: "schema", value: schema } as const)
      : ({ field: "version", value: version } as const);
    return { ...wrong, checked: versionFor(entry, said), versions };
  }

  /**
   * Registers the payload schemas of definitions: a new version of each type whose schema changed. From then on every
   * job of these types is checked, and each version must be able to read the jobs of the one before it.
   */
  async publish(
    definitions: readonly AnyDefinition[],
    options: SchemaOptions = {},
  ): Promise<PublishedSchema[]> {
    const published: PublishedSchema[] = [];
    const schemas = definitions.map((definition, index) => {
      assertDefinition(definition, `definitions[${index}]`);
      return { definition, schema: checkJsonSchema(argsSchemaOf(definition), definition.type) };
    });
    for (const { definition, schema } of schemas)
      published.push(await this.publishSchema(definition.type, schema, options));
    return published;
  }

  /** Registers a new version, unless the newest one is the same. The first one sets the rules of its type. */
  async publishSchema(type: string, schema: unknown, options: SchemaOptions = {}): Promise<PublishedSchema> {
    const made = checkJsonSchema(schema);
    const newest = await this.get(type);
    if (newest && canonicalJson(newest.schema as Json) === canonicalJson(made as Json))
      return { type, version: newest.version, isNew: false };
    const version = newest ? String(Number(newest.version.split(".")[0]) + 1) : "1";
    await this.put(type, version, made, newest ? options : { ...FIRST, ...options });
    return { type, version, isNew: true };
  }

  async #index(): Promise<SchemaIndex> {
    return (await SCHEMA_INDEX.load(this.#context.store, ALL_TYPES))?.body ?? EMPTY;
  }

  /** The version that a new one is compared with. */
  async #before(type: string, version: string): Promise<{ version: string; schema: JsonSchema } | null> {
    const older = olderThan(entryOf(await this.#index(), type)?.versions ?? [], version);
    const record = older && (await SCHEMAS.load(this.#context.store, schemaName(type, older.version)));
    return record ? { version: older.version, schema: record.body.schema } : null;
  }

  #refuseBreaks(
    type: string,
    version: string,
    before: { readonly version: string; readonly schema: JsonSchema },
    schema: JsonSchema,
    mode: Compatibility,
  ): void {
    const reasons = incompatibilities(before.schema, schema, mode);
    if (reasons.length === 0) return;
    const says = `schema: version ${version} of ${type} is not ${mode} compatible with version ${before.version}; ${reasons.join("; ")}: change it, or say compatibility "none"`;
    throw new CurfewError("incompatible_schema", says, { field: "schema" });
  }

  async #change(
    call: string,
    change: (
      index: SchemaIndex,
      now: Instant,
    ) => {
      readonly index: SchemaIndex;
      readonly effects: NonNullable<RecordChange<SchemaIndex>["effects"]>;
      readonly audit: readonly [action: string, details: { readonly [name: string]: Json }];
    },
  ): Promise<void> {
    await changeRecord(this.#context, call, SCHEMA_INDEX, ALL_TYPES, (body, now) => {
      const { index, effects, audit } = change(body ?? EMPTY, now);
      const [action, details] = audit;
      return {
        body: index,
        effects: [...effects, ...auditEffects(this.#context, this.#by, action, { details }, now)],
      };
    });
    await this.#context.schemas.refresh();
  }
}

function entryWith(entry: TypeEntry | undefined, { compatibility, validation }: SchemaOptions): TypeEntry {
  if (validation !== undefined && !VALIDATIONS.includes(validation))
    throw refuse("invalid_option", "validation", validation, `use one of ${VALIDATIONS.join(", ")}`);
  return {
    versions: entry?.versions ?? [],
    compatibility:
      compatibility === undefined
        ? (entry?.compatibility ?? "none")
        : checkCompatibility(compatibility, "compatibility"),
    validation: validation ?? entry?.validation ?? "named",
  };
}

/** A type may be called like a method of every object. */
function entryOf({ types }: SchemaIndex, type: string): TypeEntry | undefined {
  return Object.hasOwn(types, type) ? types[type] : undefined;
}

function withType({ types }: SchemaIndex, type: string, entry: TypeEntry | null): SchemaIndex {
  const { [type]: _old, ...rest } = types;
  return { types: entry ? { ...rest, [type]: entry } : rest };
}

function olderThan(versions: readonly VersionEntry[], version: string): VersionEntry | undefined {
  return versions.findLast((each) => compareVersions(each.version, version) < 0);
}

function refuseKnown(index: SchemaIndex, type: string, version: string, uri: string): void {
  const versions = entryOf(index, type)?.versions ?? [];
  const all = Object.values(index.types);
  if (versions.some((each) => each.version === version))
    throw new CurfewError(
      "known_schema",
      `put: version ${version} of ${type} is registered; use a newer version`,
      { field: "version" },
    );
  if (all.some((entry) => entry.versions.some((each) => each.uri === uri)))
    throw new CurfewError("known_schema", `put: the uri ${uri} is registered; use another one`, {
      field: "uri",
    });
  if (
    versions.length >= MOST_VERSIONS ||
    all.reduce((sum, entry) => sum + entry.versions.length, 0) >= MOST_SCHEMAS
  ) {
    const fix = `delete versions that no job uses: at most ${MOST_VERSIONS} of a type and ${MOST_SCHEMAS} of all`;
    throw refuse("invalid_limit", "version", version, fix);
  }
}

function changedMeanwhile(type: string): CurfewError {
  return new CurfewError(
    "invalid_state",
    `put: another version of ${type} was registered meanwhile; try again`,
  );
}

function unknownSchema(type: string, version?: string): CurfewError {
  const what = version === undefined ? `schema of ${type}` : `version ${version} of the schema of ${type}`;
  return new CurfewError("not_found", `there is no ${what}; register it first`);
}

function summaryOf(type: string, entry: TypeEntry): SchemaSummary {
  const { validation, compatibility, versions } = entry;
  return {
    type,
    newest: newestOf(entry).version,
    versions: versions.map(({ version }) => version),
    validation,
    compatibility,
  };
}
