import type { z } from "zod";
import type { By } from "../core/audit/audit-entry.ts";
import type { Engine } from "../engine/engine.ts";
import type { Service } from "../engine/service.ts";
import type { Identity, Right } from "./auth.ts";
import type { PlainHeaders } from "./errors.ts";
import type { EventHub } from "./event-hub.ts";

/** What the routes work with. */
export interface RouteContext {
  readonly engine: Engine;
  readonly service: Service;
  /** The two hooks that only a conformance suite needs. */
  readonly isConformance: boolean;
  /** False once the server closes: it takes no more work, and says so. */
  readonly isReady: () => boolean;
  readonly version: string;
  readonly metrics: () => Promise<string>;
  readonly openapi: () => string;
  /** Live events for those who read along. */
  readonly hub: EventHub;
}

/** A request that has been let in, read and checked. */
export interface RouteCall<Body = unknown, Query = unknown> {
  readonly params: Readonly<Record<string, string>>;
  readonly body: Body;
  readonly query: Query;
  readonly identity: Identity;
  readonly requestId: string;
  /** A header of the request, by its name in lower case. */
  readonly header: (name: string) => string | null;
  /** Whether whoever asked has hung up: nobody will read the reply. */
  readonly isGone: () => boolean;
}

/** A reply. The text is JSON unless it says otherwise; null is no body at all. */
export interface Reply {
  readonly status: number;
  readonly text: string | null;
  readonly headers?: PlainHeaders;
  /** In the place of a text: what comes as it happens. */
  readonly body?: ReadableStream<Uint8Array>;
}

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** One endpoint: everything that the server does with it, and that the OpenAPI document says about it. */
export interface Route {
  readonly method: Method;
  /** With parameters as `:name`. */
  readonly path: string;
  readonly right: Right;
  readonly summary: string;
  readonly tag: string;
  readonly body?: z.ZodType;
  readonly query?: z.ZodType;
  /** The body of a reply that is no refusal. */
  readonly reply?: z.ZodType;
  /** Statuses that it answers with, beside what every route may answer. */
  readonly replies: Readonly<Record<number, string>>;
  readonly run: (call: RouteCall<never, never>, context: RouteContext) => Reply | Promise<Reply>;
}

type InputOf<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined;

/** Declares a route; its handler sees the types of its schemas. */
export function route<
  Body extends z.ZodType | undefined = undefined,
  Query extends z.ZodType | undefined = undefined,
>(
  spec: Omit<Route, "body" | "query" | "run"> & {
    readonly body?: Body;
    readonly query?: Query;
    readonly run: (
      call: RouteCall<InputOf<Body>, InputOf<Query>>,
      context: RouteContext,
    ) => Reply | Promise<Reply>;
  },
): Route {
  return spec as unknown as Route;
}

/** Who an action is entered under in the audit: the name of the key, never the key. */
export function byKey({ name }: Identity): By {
  return { actor: name };
}

export function reply(status: number, text: string | null, headers?: PlainHeaders): Reply {
  return headers ? { status, text, headers } : { status, text };
}

export function json(status: number, value: unknown, headers?: PlainHeaders): Reply {
  return reply(status, JSON.stringify(value), headers);
}
