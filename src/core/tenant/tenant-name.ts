import { refuse } from "../errors.ts";

/**
 * Begins every stored name that belongs to a tenant: queues, unique keys, limit keys, workers, timeouts. No name that a
 * caller gives may begin with it, so the names of two tenants never meet.
 */
export const TENANT_MARK = "\u0001";
/** Sorts after all names of tenants and before all others. */
const FIRST_NAME = "\u0002";
/** Sorts after every name. */
const LAST_NAME = "\u{10ffff}";

const NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$/;

function isTenantName(name: unknown): name is string {
  return typeof name === "string" && NAME.test(name);
}

export function checkTenantName(name: unknown, field: string): string {
  if (isTenantName(name)) return name;
  const fix = "use 1 to 64 of A-Z a-z 0-9 . _ : - and begin with a letter or a digit";
  throw refuse("invalid_name", field, name, fix);
}

/** What the stored names of a tenant begin with. */
export function tenantPrefix(tenant: string): string {
  return `${TENANT_MARK}${tenant}${TENANT_MARK}`;
}

/** The tenant of a stored name; undefined if it belongs to none. */
export function tenantOf(stored: string): string | undefined {
  if (stored.charCodeAt(0) !== 1) return undefined;
  return stored.slice(1, stored.indexOf(TENANT_MARK, 1));
}

/** The range of the stored names of a tenant, or of all names that belong to none. `from` is included, `to` is not. */
export function namesOf(tenant: string | undefined): { readonly from: string; readonly to: string } {
  if (tenant === undefined) return { from: FIRST_NAME, to: LAST_NAME };
  return { from: tenantPrefix(tenant), to: `${TENANT_MARK}${tenant}${FIRST_NAME}` };
}

/** The name at which a descending list ends that begins at `before`: names of tenants are in lists of tenants only. */
export function lastDownFrom(before: string | null): string {
  return before?.charCodeAt(0) === 1 ? TENANT_MARK : FIRST_NAME;
}

/** Refuses a name that would look like the name of a tenant. */
export function refuseTenantMark(name: string, field: string): string {
  if (name.charCodeAt(0) !== 1) return name;
  throw refuse("invalid_name", field, name, "use a text that does not begin with U+0001");
}
