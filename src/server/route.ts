import type { z } from "zod";
import type { By } from "../core/audit/audit-entry.ts";
import { show } from "../core/errors.ts";
import type { Engine } from "../engine/engine.ts";
import type { Service } from "../engine/remote/service.ts";
import type { Logger } from "../ports/log.ts";
import type { Identity } from "./access/auth.ts";
import type { Right } from "./access/roles.ts";
import type { Sessions } from "./access/sessions.ts";
import type { DashboardNotice } from "./dashboard-files.ts";
import { type PlainHeaders, refusedField } from "./http/http-error.ts";
import type { EventHub } from "./live/event-hub.ts";

export interface RouteContext {
  readonly engine: Engine;
  readonly service: Service;
  /** The two hooks that only a conformance suite needs. */
  readonly isConformance: boolean;
  /** Reports must name the fence of the fetched job. */
  readonly requiresFence: boolean;
  /** False once the server closes. */
  readonly isReady: () => boolean;
  readonly version: string;
  readonly metrics: () => Promise<string>;
  /** Whole seconds since the server was made. */
  readonly uptime: () => number;
  /** Settings of the server that every reader may see. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly openapi: () => string;
  readonly hub: EventHub;
  readonly logger: Logger;
  /** Browser sessions; null without keys. */
  readonly sessions: Sessions | null;
  /** What the dashboard says about this server. */
  readonly notice: DashboardNotice | null;
}

/** A request after all checks. */
export interface RouteCall<Body = unknown, Query = unknown> {
  readonly params: Readonly<Record<string, string>>;
  readonly body: Body;
  readonly query: Query;
  readonly identity: Identity;
  readonly requestId: string;
  /** A parameter of the query. */
  readonly param: (name: string) => string | undefined;
  /** A header of the request, by its name in lower case. */
  readonly header: (name: string) => string | null;
  /** Whether the client has disconnected. */
  readonly isGone: () => boolean;
}

/** A reply. The text is JSON unless a header says otherwise; null is no body. */
export interface Reply {
  readonly status: number;
  readonly text: string | null;
  readonly headers?: PlainHeaders;
  /** A stream instead of a text. */
  readonly body?: ReadableStream<Uint8Array>;
}

export type RouteScope = "tenant" | "server" | "anyone";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** One endpoint. The server and the OpenAPI document both use it. */
export interface Route {
  readonly method: Method;
  /** With parameters as `:name`. */
  readonly path: string;
  readonly right: Right;
  /**
   * What the route may see. `tenant`: what belongs to the tenant of the caller, or to none; its context shows nothing
   * else. `server`: the whole server, so callers within a tenant are refused. `anyone`: nothing that belongs to anybody.
   */
  readonly scope: RouteScope;
  readonly summary: string;
  readonly tag: string;
  readonly body?: z.ZodType;
  readonly query?: z.ZodType;
  /** The body of a successful reply. */
  readonly reply?: z.ZodType;
  /** The reply depends on the path and the query alone, so callers that accept an age may share it. */
  readonly isShared?: true;
  /** Nothing keeps unknown fields of its body, so each of them is named in a warning. So it is for all settings. */
  readonly keepsNone?: true;
  /** Statuses of this route, besides those of every route. */
  readonly replies: Readonly<Record<number, string>>;
  readonly run: (call: RouteCall<never, never>, context: RouteContext) => Reply | Promise<Reply>;
}

/** Routes with these rights write to the audit, with the caller's reason. */
const AUDITED: ReadonlySet<Right> = new Set<Right>(["operate", "cancel"]);

export function isAudited({ right, method }: Pick<Route, "right" | "method">): boolean {
  return AUDITED.has(right) && method !== "GET";
}

type InputOf<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined;

type Schema = z.ZodType | undefined;

type RouteSpec<Body extends Schema, Query extends Schema> = Omit<
  Route,
  "method" | "path" | "right" | "body" | "query" | "run"
> & {
  readonly body?: Body;
  readonly query?: Query;
  readonly run: (
    call: RouteCall<InputOf<Body>, InputOf<Query>>,
    context: RouteContext,
  ) => Reply | Promise<Reply>;
};

/** Declares a route. Its handler gets the types of its schemas. */
export function route<Body extends Schema = undefined, Query extends Schema = undefined>(
  method: Method,
  path: string,
  right: Right,
  spec: RouteSpec<Body, Query>,
): Route {
  const made = { method, path, right, ...spec } as unknown as Route;
  if (!isAudited(made)) return made;
  const run = (call: RouteCall, context: RouteContext) =>
    made.run({ ...call, identity: { ...call.identity, reason: reasonOf(call) } } as never, context);
  return { ...made, run };
}

/** Declares the routes of a file, which have the tag and the scope in common. */
export function routesOf(shared: Pick<Route, "tag" | "scope">) {
  return <Body extends Schema = undefined, Query extends Schema = undefined>(
    method: Method,
    path: string,
    right: Right,
    spec: Omit<RouteSpec<Body, Query>, "tag" | "scope">,
  ): Route => route(method, path, right, { ...spec, ...shared } as RouteSpec<Body, Query>);
}

const REASON_LIMIT = 500;

/** Why somebody does this: a field of the body or of the query, or a header, in which nothing but ASCII travels safely. */
function reasonOf({ body, header, param }: RouteCall): string | undefined {
  const inBody = (body as { readonly reason?: unknown } | null | undefined)?.reason ?? param("reason") ?? "";
  const said = inBody === "" ? header("x-audit-reason") : inBody;
  if (said === null || said === "") return undefined;
  const printable = inBody === "" ? /^[\x20-\x7e]*$/ : /^[^\p{Cc}\p{Cs}]*$/u;
  if (typeof said === "string" && said.length <= REASON_LIMIT && printable.test(said)) return said;
  const fix = `send a text of up to ${REASON_LIMIT} characters on one line, beyond ASCII in the body or the query`;
  throw refusedField("reason", `${show(said)} is not valid; ${fix}`);
}

/** The actor for the audit: the name of the key, never the key. */
export function byKey({ name, reason }: Identity): By {
  return reason === undefined ? { actor: name } : { actor: name, reason };
}

export function reply(status: number, text: string | null, headers?: PlainHeaders): Reply {
  return headers ? { status, text, headers } : { status, text };
}

export function json(status: number, value: unknown, headers?: PlainHeaders): Reply {
  return reply(status, JSON.stringify(value), headers);
}
