import { refuse } from "../../errors.ts";
import { isObject } from "../../is-object.ts";
import { toJsonText } from "../../schema.ts";
import type { JobOptions } from "../job.ts";

const TENANT_ID = "tenant_id";

/** Refuses a tenant that is not the caller's: the job would look as if it were another's. */
export function metaOf(tenant: string, meta: JobOptions["meta"]): NonNullable<JobOptions["meta"]> {
  const said = meta?.[TENANT_ID];
  if (said === undefined || said === tenant) return { ...meta, [TENANT_ID]: tenant };
  const fix = `leave it out, or write ${JSON.stringify(tenant)}: the caller works within that tenant`;
  throw refuse("invalid_option", `options.meta.${TENANT_ID}`, said, fix);
}

/** The meta of an enqueue or a workflow, as it is stored. */
export function copyMeta(meta: unknown): NonNullable<JobOptions["meta"]> {
  if (!isObject(meta)) throw refuse("invalid_option", "options.meta", meta, "write an object");
  return JSON.parse(toJsonText(meta, "options.meta"));
}
