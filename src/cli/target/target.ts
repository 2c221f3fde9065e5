import { existsSync } from "node:fs";
import { hostname, userInfo } from "node:os";
import type { SchemaVersions } from "../../core/doctor/doctor-facts.ts";
import { ifMissing, SERVER_PACKAGES } from "../../core/load-package.ts";
import { realSystem } from "../../engine/runtime/real-system.ts";
import type { openEngine } from "../../open.ts";
import type { Logger } from "../../ports/log.ts";
import { CommandFailed, type Exit } from "../exit.ts";
import type { Output } from "../output/output.ts";
import { readEventStream, type StreamEvent } from "./read-event-stream.ts";

type Engine = Awaited<ReturnType<typeof openEngine>>;

/** A JSON body of the HTTP interface; docs/openapi.json describes it. */
export type Fields = Readonly<Record<string, unknown>>;
export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

export interface TargetOptions {
  readonly store?: string | undefined;
  readonly url?: string | undefined;
  readonly key?: string | undefined;
  /** Left out: what belongs to no tenant, or to the one of the key. */
  readonly tenant?: string | undefined;
  /** The command runs jobs itself, so the engine on the store does all that a worker's engine does. */
  readonly runsJobs?: boolean | undefined;
}

/**
 * The store or server that a command works on. Both go through the same routes, a server over HTTP and a store in this
 * process, so both give the same answer.
 */
export interface Target {
  readonly kind: "store" | "server";
  /** The address without its password, for messages. */
  readonly name: string;
  /** The engine on the store, for calls that have no route; undefined for a server. It claims no jobs. */
  readonly engine: Engine | undefined;
  now(): number;
  /** Sends a read request. Ctrl-C aborts it. */
  get(path: string, query?: Query): Promise<Fields>;
  /** Sends a change, without the fields that are undefined. Ctrl-C does not abort it, so the command can say what was done. */
  send(method: "POST" | "PUT" | "PATCH" | "DELETE", path: string, body?: Fields): Promise<Fields>;
  /** Reads server-sent events until the signal aborts or the server closes the stream. */
  stream(path: string, query: Query, signal: AbortSignal): AsyncGenerator<StreamEvent, void, undefined>;
  close(): Promise<void>;
}

const STORE_WITHIN = 3_000;
const ANSWER_WITHIN = 40_000;
const ENGINE_DRAIN = "1s";

/** The parts of a command that a target uses. */
interface Asker {
  readonly output: Pick<Output, "during">;
  /** Ctrl-C. */
  readonly signal: AbortSignal;
}

export async function openTarget(options: TargetOptions, asker: Asker): Promise<Target> {
  const { store, url, key, tenant } = options;
  if (store !== undefined && url !== undefined)
    throw new CommandFailed("usage", "--store and --url: pass one of them, not both");
  if (url !== undefined) return new RouteTarget(within(serverRoutes(url, key), tenant), asker);
  if (store !== undefined) {
    const routes = await storeRoutes(store, options.runsJobs);
    const engine = tenant === undefined ? routes.engine : await routes.engine?.tenant(tenant);
    return new RouteTarget(within({ ...routes, engine }, tenant), asker);
  }
  throw new CommandFailed(
    "usage",
    "no store or server given; pass --store <address> or --url <url>, or set CURFEW_STORE or CURFEW_URL",
  );
}

/** Sends requests to one server, or to the routes in this process. */
interface Routes extends Pick<Target, "kind" | "name" | "engine" | "now" | "close"> {
  fetch(path: string, init: RequestInit): Promise<Response>;
}

/** The same routes for one tenant. */
function within(routes: Routes, tenant: string | undefined): Routes {
  if (tenant === undefined) return routes;
  const fetchWithin: Routes["fetch"] = (path, init) =>
    routes.fetch(path, { ...init, headers: { ...(init.headers as object), "x-ojs-tenant": tenant } });
  return { ...routes, fetch: fetchWithin };
}

async function storeRoutes(address: string, runsJobs = false): Promise<Routes> {
  if (address === "memory:")
    throw new CommandFailed(
      "usage",
      "--store: memory: exists only inside its own process; pass --url with the server of that process",
    );
  refuseBarePath(address);
  refuseMissingFile(address);
  const { hidePassword, openEngine } = await import("../../open.ts");
  const { createServer } = await import("../../server/app.ts").catch(
    ifMissing(SERVER_PACKAGES, "A command on a store"),
  );
  const name = hidePassword(address);
  let engine: Engine;
  try {
    await refuseOldSchema(address, name);
    // A look at a store must not fire what is due there: that is for the version that the workers run.
    engine = await openEngine({
      store: address,
      ...(!runsJobs && { role: "operator" as const }),
      openWithin: `${STORE_WITHIN}ms`,
      logger: quietLogger,
    });
  } catch (error) {
    throw unopened(name, error);
  }
  const { createKey } = await import("../../server/access/auth.ts");
  const { key, hash } = createKey();
  const keys = [{ name: operatorName(), role: "admin" as const, hash }];
  const server = createServer(engine, { recordEvents: false, dashboard: false, keys });
  return {
    kind: "store",
    name,
    engine,
    now: () => engine.now(),
    fetch: async (path, init) =>
      server.fetch(new Request(`http://store${path}`, { ...init, headers: withKey(init, key) })),
    async close() {
      await server.close();
      await engine.close({ drain: ENGINE_DRAIN });
    },
  };
}

/** The actor of the audit for a command on a store, such as `mia@web-1`, in the characters of a key's name. */
function operatorName(): string {
  const clean = (text: string) => text.replace(/[^A-Za-z0-9._-]/g, "_").replace(/^[._-]+/, "");
  let user = "";
  try {
    user = userInfo().username;
  } catch {
    // A container may run under a number that has no name.
  }
  return `${clean(user) || "local"}@${clean(hostname())}`.slice(0, 64);
}

function withKey({ headers }: RequestInit, key: string | undefined): Record<string, string> {
  return {
    ...(headers as Record<string, string>),
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
  };
}

/** A path without `sqlite:` is the most likely mistake. */
export function refuseBarePath(address: string): void {
  if (address === "" || address === "memory" || address.includes(":")) return;
  const said = JSON.stringify(address);
  throw new CommandFailed("usage", `--store: ${said} is not an address; did you mean sqlite:${address}?`);
}

/** Without this check a mistyped path would create an empty database, and every list would be empty. */
function refuseMissingFile(address: string): void {
  if (!address.startsWith("sqlite:")) return;
  const path = address.slice("sqlite:".length);
  if (path === "" || existsSync(path)) return;
  const fix = "check the path, or make a new store with curfew migrate";
  throw new MissingFile("unreachable", `--store: there is no file ${JSON.stringify(path)}; ${fix}`, path);
}

/** The SQLite file of a store does not exist. */
export class MissingFile extends CommandFailed {
  readonly path: string;

  constructor(exit: Exit, message: string, path: string) {
    super(exit, message);
    this.path = path;
  }
}

/**
 * An engine migrates the store that it opens. A command must not: a look at a store must leave it as the workers know
 * it, and a command may be newer than they are.
 */
async function refuseOldSchema(address: string, name: string): Promise<void> {
  const { onThisMachine, planMigrations, retryUnreachable } = await import("../../open.ts");
  const plan = () => planMigrations(address);
  const { applied, pending } = await retryUnreachable(plan, STORE_WITHIN, onThisMachine(), quietLogger);
  if (pending.length === 0) return;
  const versions = {
    schemaVersion: Math.max(0, ...applied.map(({ version }) => version)),
    newestVersion: Math.max(...pending.map(({ version }) => version)),
  };
  throw new OldSchema(name, versions);
}

/** The store lacks migrations, and the command does not apply them. */
export class OldSchema extends CommandFailed {
  readonly versions: SchemaVersions;

  constructor(name: string, versions: SchemaVersions) {
    const { schemaVersion, newestVersion } = versions;
    const problem =
      schemaVersion === 0
        ? "has no tables of curfew; check the address, or make them with curfew migrate"
        : `has schema version ${schemaVersion}, and this curfew needs version ${newestVersion}; update it with curfew migrate (--plan shows the changes), or run the curfew that your workers run`;
    super("unreachable", `${name} ${problem}`);
    this.versions = versions;
  }
}

export function unopened(name: string, error: unknown): Error {
  if (error instanceof CommandFailed) return error;
  if (!(error instanceof Error)) return new CommandFailed("unreachable", `${name}: ${String(error)}`);
  const code = (error as { code?: unknown }).code;
  if (code === "unknown_store" || code === "invalid_option")
    return new CommandFailed("usage", error.message, { cause: error });
  const because = error.message || String((error as { code?: unknown }).code ?? error.name);
  return new CommandFailed("unreachable", `${name} cannot be opened: ${because}`, { cause: error });
}

/** Prints only the errors of the engine; its other log lines do not concern a command. */
const quietLogger: Logger = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: (fields, message) => {
    const { error } = fields as { error?: unknown };
    const because = error instanceof Error ? `: ${error.message}` : "";
    process.stderr.write(`curfew: ${message ?? "the engine reported an error"}${because}\n`);
  },
};

function serverRoutes(url: string, key: string | undefined): Routes {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new CommandFailed("usage", `--url: ${JSON.stringify(url)} is not a URL; write http://host:port`);
  const base = url.replace(/\/+$/, "");
  const { host } = new URL(url);
  return {
    kind: "server",
    name: base.replace(/\/\/[^@/]*@/, "//***@"),
    engine: undefined,
    now: () => realSystem.wall(),
    async fetch(path, init) {
      try {
        return await fetch(base + path, { ...init, headers: withKey(init, key), redirect: "manual" });
      } catch (error) {
        if (init.signal?.aborted) throw init.signal.reason;
        throw new CommandFailed("unreachable", `the server at ${host} cannot be reached (${codeOf(error)})`, {
          cause: error,
        });
      }
    },
    close: async () => {},
  };
}

/** The code of a refused connection is in the cause of the error. */
function codeOf(error: unknown): string {
  for (let at = error; at instanceof Error; at = at.cause)
    if ("code" in at && typeof at.code === "string" && at.code !== "") return at.code;
  return error instanceof Error ? error.message : String(error);
}

const JSON_TYPE = "application/json";

class RouteTarget implements Target {
  readonly #routes: Routes;
  readonly #asker: Asker;

  constructor(routes: Routes, asker: Asker) {
    this.#routes = routes;
    this.#asker = asker;
  }

  get kind() {
    return this.#routes.kind;
  }

  get name(): string {
    return this.#routes.name;
  }

  get engine(): Engine | undefined {
    return this.#routes.engine;
  }

  now(): number {
    return this.#routes.now();
  }

  get(path: string, query: Query = {}): Promise<Fields> {
    return this.#ask("GET", path + queryText(query), undefined, this.#asker.signal);
  }

  send(method: "POST" | "PUT" | "PATCH" | "DELETE", path: string, body?: Fields): Promise<Fields> {
    return this.#ask(method, path, body, undefined);
  }

  async #ask(
    method: string,
    path: string,
    body: Fields | undefined,
    stop: AbortSignal | undefined,
  ): Promise<Fields> {
    stop?.throwIfAborted();
    const late = new AbortController();
    const timer = realSystem.after(ANSWER_WITHIN, () => {
      const message = `${this.name}: no answer within ${ANSWER_WITHIN / 1_000} s`;
      late.abort(new CommandFailed("unreachable", message));
    });
    const signal = stop ? AbortSignal.any([stop, late.signal]) : late.signal;
    try {
      const asked = this.#routes
        .fetch(path, {
          method,
          headers: { accept: JSON_TYPE, ...(body && { "content-type": JSON_TYPE }) },
          ...(body && { body: JSON.stringify(body) }),
          signal,
        })
        .then((response) => this.#read(response, path));
      // Routes that run in this process ignore the signal.
      const answered = Promise.race([asked, aborted(signal)]);
      return await this.#asker.output.during(`waiting for ${this.name}`, () => answered);
    } finally {
      timer.cancel();
    }
  }

  async #read(response: Response, path: string): Promise<Fields> {
    const text = await response.text();
    let value: unknown;
    try {
      value = text === "" ? {} : JSON.parse(text);
    } catch (error) {
      throw new CommandFailed(
        "unreachable",
        `${this.name}: the answer to ${path} is not JSON; check that the URL is that of a curfew server`,
        { cause: error },
      );
    }
    if (!response.ok) throw refusal(response.status, value);
    return value as Fields;
  }

  async *stream(
    path: string,
    query: Query,
    signal: AbortSignal,
  ): AsyncGenerator<StreamEvent, void, undefined> {
    const response = await this.#routes.fetch(path + queryText(query), {
      method: "GET",
      headers: { accept: "text/event-stream" },
      signal,
    });
    if (!response.ok || !response.body) {
      await this.#read(response, path);
      return;
    }
    yield* readEventStream(response.body, signal);
  }

  close(): Promise<void> {
    return this.#routes.close();
  }
}

function queryText(query: Query): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [`${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`],
  );
  return given.length === 0 ? "" : `?${given.join("&")}`;
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** A refused request, with the message of the server. */
export class Refusal extends CommandFailed {
  readonly status: number;

  constructor(exit: Exit, message: string, status: number) {
    super(exit, message);
    this.status = status;
  }
}

function refusal(status: number, body: unknown): Refusal {
  const error = (body as { error?: { message?: unknown } } | null)?.error;
  const said = typeof error?.message === "string" ? error.message : `the server answered ${status}`;
  if (status === 401) return new Refusal("refused", `${said}; pass --key or set CURFEW_KEY`, status);
  if (status === 403) return new Refusal("refused", said, status);
  if (status === 400 || status === 422) return new Refusal("usage", said, status);
  return new Refusal(status >= 500 || status === 429 ? "unreachable" : "failed", said, status);
}
