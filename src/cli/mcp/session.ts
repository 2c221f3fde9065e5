import { isObject } from "../../core/is-object.ts";
import type { Fields } from "../target/target.ts";
import { type BoundedLine, boundedLines } from "./bounded-lines.ts";

/** Versions of the protocol that this server speaks, the newest first. What it uses is the same in all of them. */
const VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] as const;

/** Error codes of JSON-RPC. */
const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;
const UNKNOWN_METHOD = -32_601;
const INVALID_PARAMS = -32_602;
const INTERNAL_ERROR = -32_603;
const BUSY = -32_000;

/** A request of this many bytes is refused: no call of a tool needs as much. */
const LONGEST_REQUEST = 1_000_000;
/** Calls at once. A client that sends more gets an error, so nothing piles up. */
const MOST_CALLS = 32;

export interface ToolDescription {
  readonly name: string;
  readonly [field: string]: unknown;
}

/** What a server offers. */
export interface McpServer {
  readonly name: string;
  readonly version: string;
  readonly instructions: string;
  readonly tools: readonly ToolDescription[];
  /** Calls a tool. What the caller did wrong comes back as a result with `isError`; a throw is a fault of ours. */
  readonly call: (tool: string, given: Fields) => Promise<Fields>;
}

type RequestId = string | number;

class RpcError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/**
 * One client of the Model Context Protocol over lines of JSON-RPC: initialize, ping, tools/list, tools/call and
 * cancellation. Ends when the input ends.
 */
export class McpSession {
  readonly #server: McpServer;
  readonly #write: (text: string) => Promise<void>;
  readonly #calls = new Map<RequestId, { isCancelled: boolean }>();
  readonly #running = new Set<Promise<void>>();
  #isInitialized = false;

  constructor(server: McpServer, write: (text: string) => Promise<void>) {
    this.#server = server;
    this.#write = write;
  }

  async serve(input: AsyncIterable<Buffer>): Promise<void> {
    for await (const line of boundedLines(input, LONGEST_REQUEST)) {
      const handled = this.#handle(line).finally(() => this.#running.delete(handled));
      this.#running.add(handled);
      // Waits for a reader that is slower than the requests come; calls of tools go on meanwhile.
      if (this.#running.size > 2 * MOST_CALLS) await Promise.race(this.#running);
    }
    await Promise.all(this.#running);
  }

  async #handle(line: BoundedLine): Promise<void> {
    if ("tooLong" in line)
      return this.#fail(
        null,
        PARSE_ERROR,
        `a request has ${line.tooLong} bytes; send at most ${LONGEST_REQUEST}`,
      );
    if (line.text.trim() === "") return;
    let message: unknown;
    try {
      message = JSON.parse(line.text);
    } catch {
      return this.#fail(null, PARSE_ERROR, "a line is not JSON; send one JSON-RPC message per line");
    }
    if (!isObject(message))
      return this.#fail(null, INVALID_REQUEST, "send one JSON-RPC object per line, and no list");
    await this.#receive(message);
  }

  async #receive({ jsonrpc, id, method, params }: Fields): Promise<void> {
    const isId = typeof id === "string" || (typeof id === "number" && Number.isFinite(id));
    // An answer to a request that this server never sends.
    if (method === undefined && isId) return;
    if (jsonrpc !== "2.0" || typeof method !== "string" || (id !== undefined && !isId))
      return this.#fail(isId ? id : null, INVALID_REQUEST, 'send {"jsonrpc":"2.0","id":…,"method":…}');
    const given = isObject(params) ? params : {};
    if (!isId) return this.#notice(method, given);
    if (params !== undefined && !isObject(params))
      return this.#fail(id, INVALID_PARAMS, "params: send an object");
    await this.#answer(id, method, given);
  }

  #notice(method: string, { requestId }: Fields): void {
    if (method !== "notifications/cancelled") return;
    const call = this.#calls.get(requestId as RequestId);
    if (call) call.isCancelled = true;
  }

  async #answer(id: RequestId, method: string, params: Fields): Promise<void> {
    if (this.#calls.has(id))
      return this.#fail(id, INVALID_REQUEST, "id: a request with this id is under way");
    if (this.#calls.size >= MOST_CALLS)
      return this.#fail(id, BUSY, `${MOST_CALLS} requests are under way; wait for their answers`);
    const call = { isCancelled: false };
    this.#calls.set(id, call);
    let reply: Fields;
    try {
      reply = { result: await this.#run(method, params) };
    } catch (error) {
      reply = { error: errorFields(error) };
    } finally {
      this.#calls.delete(id);
    }
    // The protocol wants no answer to a request that was cancelled.
    if (!call.isCancelled) await this.#send({ jsonrpc: "2.0", id, ...reply });
  }

  async #run(method: string, params: Fields): Promise<Fields> {
    if (method === "ping") return {};
    if (method === "initialize") return this.#initialize(params);
    if (!this.#isInitialized && method.startsWith("tools/"))
      throw new RpcError(INVALID_REQUEST, "send initialize first");
    if (method === "tools/list") return this.#list(params);
    if (method === "tools/call") return this.#call(params);
    throw new RpcError(UNKNOWN_METHOD, `${JSON.stringify(method.slice(0, 100))}: there is no such method`);
  }

  /** The client's version if it is known here, else the newest one: the client then decides whether it goes on. */
  #initialize({ protocolVersion }: Fields): Fields {
    if (typeof protocolVersion !== "string")
      throw new RpcError(INVALID_PARAMS, "protocolVersion: send a text, such as 2025-11-25");
    const { name, version, instructions } = this.#server;
    this.#isInitialized = true;
    return {
      protocolVersion: VERSIONS.find((known) => known === protocolVersion) ?? VERSIONS[0],
      capabilities: { tools: {} },
      serverInfo: { name, version },
      instructions,
    };
  }

  #list({ cursor }: Fields): Fields {
    if (cursor !== undefined) throw new RpcError(INVALID_PARAMS, "cursor: all tools are on the first page");
    return { tools: this.#server.tools };
  }

  async #call({ name, arguments: given = {} }: Fields): Promise<Fields> {
    if (!this.#server.tools.some((tool) => tool.name === name))
      throw new RpcError(INVALID_PARAMS, `name: there is no tool ${JSON.stringify(name)?.slice(0, 100)}`);
    if (!isObject(given)) throw new RpcError(INVALID_PARAMS, "arguments: send an object");
    return this.#server.call(name as string, given);
  }

  #fail(id: unknown, code: number, message: string): Promise<void> {
    return this.#send({ jsonrpc: "2.0", id, error: { code, message } });
  }

  #send(message: Fields): Promise<void> {
    return this.#write(`${JSON.stringify(message)}\n`);
  }
}

function errorFields(error: unknown): Fields {
  if (error instanceof RpcError) return { code: error.code, message: error.message };
  const message = error instanceof Error ? error.message : String(error);
  return { code: INTERNAL_ERROR, message: `a fault of the server: ${message}` };
}
