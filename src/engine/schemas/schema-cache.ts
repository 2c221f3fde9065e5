import { CurfewError } from "../../core/errors.ts";
import type { JobOptions } from "../../core/job/job.ts";
import { type TypeEntry, versionFor } from "../../core/registry/registered-schema.ts";
import type { Json } from "../../core/schema.ts";
import type { Store } from "../../ports/store.ts";
import { ALL_TYPES, SCHEMA_INDEX, SCHEMAS, schemaName } from "./schema-records.ts";
import { type Misfit, type Validator, validators } from "./validator.ts";

/** A job as it will be stored. */
export interface CheckedJob {
  readonly type: string;
  readonly payload: string;
  readonly options?: Pick<JobOptions, "wire"> | null | undefined;
}

/** Compiled schemas that one process keeps. */
const MOST_KEPT = 500;

/**
 * Checks jobs against the registered schemas. A process reads which schemas there are every five seconds, and at once
 * after its own changes; a schema is loaded and compiled when the first job needs it.
 */
export class SchemaCache {
  readonly #store: Store;
  #version = 0;
  #asked = 0;
  #answered = 0;
  #types: ReadonlyMap<string, TypeEntry> = new Map();
  #validators = new Map<string, Promise<Validator | null>>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** The types with schemas. */
  get types(): ReadonlyMap<string, TypeEntry> {
    return this.#types;
  }

  async refresh(): Promise<void> {
    this.#asked += 1;
    const asked = this.#asked;
    const record = await SCHEMA_INDEX.load(this.#store, ALL_TYPES);
    // Answers may overtake each other: one that was asked for before the last one is old.
    if (asked < this.#answered) return;
    this.#answered = asked;
    const version = record?.version ?? 0;
    if (version === this.#version) return;
    this.#version = version;
    this.#types = new Map(Object.entries(record?.body.types ?? {}));
    this.#validators = new Map();
  }

  /** Rejects with the first job that does not fit; undefined if no job has to be checked. */
  check(jobs: readonly CheckedJob[]): Promise<void> | undefined {
    if (this.#types.size === 0) return undefined;
    const checked = jobs.filter(({ type }) => this.#types.has(type));
    return checked.length === 0 ? undefined : this.#checkAll(checked, jobs);
  }

  async #checkAll(checked: readonly CheckedJob[], jobs: readonly CheckedJob[]): Promise<void> {
    for (const job of checked) {
      const wire = job.options?.wire as Wire | undefined;
      const entry = this.#types.get(job.type);
      const version = entry && versionFor(entry, wire?.fields ?? {});
      if (version === undefined) continue;
      const value = JSON.parse(job.payload) as Json;
      const misfit = await this.misfit(
        job.type,
        version,
        wire?.spread ? (value as readonly Json[]) : [value],
      );
      if (misfit) throw mismatch(job.type, version, misfit, jobs.length > 1 ? jobs.indexOf(job) : null);
    }
  }

  /** What does not fit a version; null if all does. A version that is not registered refuses everything. */
  async misfit(type: string, version: string, args: readonly Json[]): Promise<Misfit | null> {
    const name = schemaName(type, version);
    let validator = this.#validators.get(name);
    if (!validator) {
      if (this.#validators.size >= MOST_KEPT) this.#validators.clear();
      validator = this.#load(name);
      this.#validators.set(name, validator);
      // A store that failed once may answer next time.
      validator.catch(() => this.#validators.delete(name));
    }
    const check = await validator;
    const known = this.#types.get(type)?.versions.map((each) => each.version) ?? [];
    if (!check)
      return { at: "", message: `there is no such version; registered are ${known.join(", ") || "none"}` };
    return check(args);
  }

  async #load(name: string): Promise<Validator | null> {
    const record = await SCHEMAS.load(this.#store, name);
    return record ? (await validators())(record.body.schema) : null;
  }
}

interface Wire {
  readonly fields?: { readonly version?: unknown; readonly schema?: unknown };
  readonly spread?: boolean;
}

/** The value is not repeated: it may be secret. */
function mismatch(type: string, version: string, { at, message }: Misfit, index: number | null): CurfewError {
  const field = `${index === null ? "" : `jobs[${index}].`}args${at}`;
  const says = `${field}: ${message}; version ${version} of the schema of ${type} says so: change the arguments, or name another version`;
  return new CurfewError("schema_mismatch", says, { field });
}
