import { z } from "zod";
import { instantText } from "../../ojs/wire-fields.ts";
import { chooseTenant } from "../access/auth.ts";
import { ROLES } from "../access/roles.ts";
import { refuseForgery } from "../access/sessions.ts";
import { HttpError } from "../http/http-error.ts";
import { json, type Route, type RouteCall, type RouteContext, routesOf } from "../route.ts";
import { sessionReply } from "../wire/admin-replies.ts";

const PATH = "/ojs/v1/session";
const route = routesOf({ tag: "session", scope: "anyone" });

const headOf = ({ header }: Pick<RouteCall, "header">, method: string) => ({
  method,
  headers: { get: header },
});

/** The caller and its rights, and the facts about the server that a page needs first. */
function sessionFields(
  { identity: { name, role, by, tenant, tenants } }: Pick<RouteCall, "identity">,
  { engine, version, uptime, sessions, notice }: RouteContext,
  endsAt: number | undefined,
) {
  return {
    name,
    role,
    tenant: tenant ?? null,
    tenants: tenants ?? (role === "admin" ? "*" : []),
    rights: ROLES[role].filter((right) => right !== "open"),
    authentication: by ?? "key",
    can_log_out: by === "session",
    ends_at: endsAt === undefined ? null : instantText(endsAt),
    has_keys: sessions !== null,
    version,
    store: engine.store.capabilities.name,
    server_time: instantText(engine.now()),
    uptime_seconds: uptime(),
    notice,
  };
}

const get = route("GET", PATH, "read", {
  summary: "Who the caller is, what it may do, and the server's version, store and clock",
  reply: sessionReply,
  replies: { 200: "The caller" },
  run(call, context) {
    const endsAt =
      call.identity.by === "session" ? context.sessions?.find(headOf(call, "GET"))?.endsAt : undefined;
    return json(200, sessionFields(call, context, endsAt));
  },
});

const loginSchema = z
  .strictObject({ key: z.string().min(1).max(200) })
  .meta({ id: "LoginRequest", description: "A key as `curfew keys new` printed it." });

const login = route("POST", PATH, "open", {
  summary: "Log in with a key: a cookie replaces it for 12 hours",
  reply: sessionReply,
  body: loginSchema,
  replies: {
    200: "The caller, and the cookie",
    401: "The key is not known",
    403: "Another site's page asked",
    409: "The server asks for no keys",
  },
  run(call, context) {
    const request = headOf(call, "POST");
    refuseForgery(request);
    if (!context.sessions)
      throw new HttpError(409, "invalid_request", "This server has no keys, so there is no login");
    const { identity, endsAt, cookie } = context.sessions.open(call.body.key, request);
    const fields = sessionFields({ identity: { ...identity, by: "session" } }, context, endsAt);
    return json(200, fields, { "Set-Cookie": cookie });
  },
});

const changeSchema = z.strictObject({ tenant: z.string().min(1).max(64).nullable() }).meta({
  id: "SessionChange",
  description: "The tenant that the pages of this session show; null for none.",
});

const change = route("PATCH", PATH, "read", {
  summary: "Choose the tenant that the pages of this session show",
  reply: sessionReply,
  body: changeSchema,
  replies: { 200: "The caller", 403: "The key may not work within this tenant", 409: "There is no session" },
  run(call, context) {
    const { body, identity } = call;
    const request = headOf(call, "PATCH");
    const session = identity.by === "session" ? context.sessions?.find(request) : null;
    if (!session) {
      const message = "Only a browser session has a tenant of its own; send the header X-OJS-Tenant instead";
      throw new HttpError(409, "invalid_request", message);
    }
    const { chosen: _chosen, tenant: _tenant, ...asked } = identity;
    const tenant = chooseTenant(asked, body.tenant);
    context.sessions?.choose(request, tenant ?? null);
    const now = tenant === undefined ? asked : { ...asked, tenant };
    return json(200, sessionFields({ identity: now }, context, session.endsAt));
  },
});

const logout = route("DELETE", PATH, "read", {
  summary: "Log out: the cookie becomes invalid",
  replies: { 200: "Logged out; a caller with a key has no session to end" },
  run(call, { sessions }) {
    const cookie = sessions?.close(headOf(call, "DELETE"));
    return json(200, { logged_out: true }, cookie === undefined ? {} : { "Set-Cookie": cookie });
  },
});

export const sessionRoutes: readonly Route[] = [get, login, change, logout];
