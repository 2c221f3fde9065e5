import { signal } from "@preact/signals";
import type { Notice, Right, Session } from "../../ojs/replies/wire-replies.ts";
import { type ApiError, api, onRefused, type Result } from "../api/client.ts";
import { heardServerTime } from "./clock.ts";
import { base } from "./router.ts";

/** Who looks at this page. `unknown` until the server has answered; `refused` asks for a key. */
export type Visit =
  | { readonly state: "unknown" }
  | { readonly state: "refused" }
  | { readonly state: "failed"; readonly error: ApiError }
  | { readonly state: "known"; readonly session: Session };

export const visit = signal<Visit>({ state: "unknown" });

onRefused(() => {
  if (visit.value.state === "known") visit.value = { state: "refused" };
});

export async function whoAmI(): Promise<void> {
  const result = await api.get<Session>("/session");
  if (result.ok) enter(result.data);
  else
    visit.value =
      result.error.status === 401 ? { state: "refused" } : { state: "failed", error: result.error };
}

function enter(session: Session): void {
  heardServerTime(Date.parse(session.server_time));
  visit.value = { state: "known", session };
}

export async function logIn(key: string): Promise<Result<Session>> {
  const result = await api.post<Session>("/session", { key });
  if (result.ok) enter(result.data);
  return result;
}

/** The names of the tenants, for viewers that may choose any. */
export async function listTenants(): Promise<readonly string[]> {
  const result = await api.get<{ readonly items: readonly { readonly tenant_id: string }[] }>(
    "/admin/tenants",
    { per_page: 200 },
  );
  return result.ok ? result.data.items.map(({ tenant_id }) => tenant_id) : [];
}

/** Shows another tenant. Everything that is on the page belongs to the last one, so the page starts again. */
export async function chooseTenant(tenant: string | null): Promise<Result<Session>> {
  const result = await api.patch<Session>("/session", { tenant });
  if (result.ok) location.assign(base);
  return result;
}

export async function logOut(): Promise<void> {
  await api.delete("/session");
  visit.value = { state: "refused" };
}

/** What the server says about itself, such as that it is a demo. */
export function notice(): Notice | null {
  return visit.value.state === "known" ? (visit.value.session.notice ?? null) : null;
}

/** Whether the viewer's role has a right. The server decides; this only keeps from offering what it would refuse. */
export function may(right: Right): boolean {
  return visit.value.state === "known" && visit.value.session.rights.includes(right);
}

/** Whether the viewer may see what is about all tenants: it is bound to none, and looks at none now. */
export function isAcrossTenants(): boolean {
  if (visit.value.state !== "known") return false;
  const { tenant = null, tenants = "*" } = visit.value.session;
  return tenant === null && tenants === "*";
}

/** Why something is not offered; undefined where it is. */
export function whyNot(right: Right): string | undefined {
  if (may(right)) return undefined;
  const role = visit.value.state === "known" ? visit.value.session.role : "unknown";
  return `Your role ${role} may not ${right}.`;
}
