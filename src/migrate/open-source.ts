import { readFileSync } from "node:fs";
import { refuse } from "../core/errors.ts";
import { checkQueue, checkType } from "../core/job/job-definition.ts";
import type { Instant } from "../core/time.ts";
import type { Source } from "./source.ts";
import type { NameRules } from "./translate.ts";

/** The job systems that jobs can be moved from. */
export const ENGINES = ["pg-boss", "graphile-worker", "bullmq"] as const;
export type EngineName = (typeof ENGINES)[number];

export interface SourceOptions {
  readonly from: EngineName;
  /** The address of its database. */
  readonly source: string;
  /** The address of curfew's store: if both are one PostgreSQL database, a batch is one transaction. */
  readonly store: string;
  readonly schema?: string | undefined;
  readonly prefix?: string | undefined;
  readonly crontab?: string | undefined;
  readonly only?: readonly string[] | undefined;
  /** `old=new`, for types. */
  readonly rename?: readonly string[] | undefined;
  readonly into?: string | undefined;
}

/** The schema that curfew's store has unless a program names another. */
const CURFEW_SCHEMA = "curfew";
const SCHEMAS = { "pg-boss": "pgboss", "graphile-worker": "graphile_worker" } as const;

export async function openSource(options: SourceOptions, now: () => Instant): Promise<Source> {
  const { from, source: address, store, only = [], crontab } = options;
  checkOptions(options);
  const names = nameRules(options);
  if (from === "bullmq") {
    const { openBullmq } = await import("./bullmq.ts");
    return openBullmq({ address, prefix: options.prefix ?? "bull", only, names, now });
  }
  const { canShareTransaction, connect, PostgresSource } = await import("./postgres-source.ts");
  const client = await connect(address);
  try {
    const settings = { schema: options.schema ?? SCHEMAS[from], only, names, now };
    const queries =
      from === "pg-boss"
        ? await (await import("./pg-boss.ts")).pgBossQueries(client, settings)
        : await (await import("./graphile-worker.ts")).graphileQueries(client, { ...settings, crontab });
    const isAtomic = await canShareTransaction(client, store, CURFEW_SCHEMA);
    return new PostgresSource(`${from} ${settings.schema}`, client, queries, isAtomic);
  } catch (error) {
    await client.end();
    throw error;
  }
}

/** Refuses options that would be ignored. */
function checkOptions({ from, source, schema, prefix, crontab }: SourceOptions): void {
  const isRedis = from === "bullmq";
  const fits = isRedis ? /^rediss?:\/\// : /^postgres(ql)?:\/\//;
  if (!fits.test(source))
    throw refuse(
      "invalid_option",
      "--source",
      source.replace(/\/\/.*@/s, "//***@"),
      `${from} needs an address that begins with ${isRedis ? "redis://" : "postgres://"}`,
    );
  const only = (name: string, value: string | undefined, engine: string) => {
    if (value !== undefined) throw refuse("invalid_option", name, value, `it is for ${engine}: leave it out`);
  };
  if (isRedis) only("--schema", schema, "pg-boss and graphile-worker");
  else only("--prefix", prefix, "bullmq");
  if (from !== "graphile-worker") only("--crontab", crontab, "graphile-worker");
  else if (crontab !== undefined) checkFile(crontab);
}

/** Reads the file before anything is moved. */
function checkFile(path: string): void {
  try {
    readFileSync(path, "utf8");
  } catch (cause) {
    throw refuse("invalid_option", "--crontab", path, "name a file that can be read", { cause });
  }
}

function nameRules({ rename = [], into }: SourceOptions): NameRules {
  const renames = new Map<string, string>();
  for (const text of rename) {
    const at = text.lastIndexOf("=");
    if (at < 1) throw refuse("invalid_option", "--rename", text, "write <old name>=<new type>");
    renames.set(text.slice(0, at), checkType(text.slice(at + 1), "--rename"));
  }
  return { renames, into: into === undefined ? undefined : checkQueue(into, "--into") };
}
