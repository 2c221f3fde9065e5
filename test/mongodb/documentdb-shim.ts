import { createServer, type Socket } from "node:net";
import { BSON, type Document } from "mongodb";
import pg from "pg";

/*
 * DocumentDB's Debian package has no gateway. This speaks the part of MongoDB's wire protocol that the official driver needs
 * (OP_MSG, and OP_QUERY for the first hello) and calls the extension's functions.
 */

const { deserialize, serialize } = BSON;
const OP_MSG = 2013;
const OP_QUERY = 2004;
const OP_REPLY = 1;
/** What PostgreSQL answers is made a duplicate key of MongoDB. */
const DUPLICATE = 319_029_277;
const DUPLICATE_KEY = 11_000;
const ONE_PAGE = 1_000_000;
/** Serialization failure and deadlock. */
const CONFLICTS = new Set(["40001", "40P01"]);
const RETRIES = 20;

interface Shim extends AsyncDisposable {
  readonly port: number;
}

export async function startShim(connectionString: string, host: string): Promise<Shim> {
  const pool = new pg.Pool({ connectionString, max: 32 });
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    serve(socket, pool, host);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as { port: number }).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      await pool.end();
    },
  };
}

function serve(socket: Socket, pool: pg.Pool, host: string): void {
  let read = Buffer.alloc(0);
  let queue = Promise.resolve();
  socket.on("data", (chunk) => {
    read = Buffer.concat([read, chunk]);
    while (read.length >= 16 && read.length >= read.readInt32LE(0)) {
      const message = read.subarray(0, read.readInt32LE(0));
      read = read.subarray(message.length);
      // One connection's requests are answered in their order.
      queue = queue.then(async () => {
        const reply = await answer(message, pool, host);
        if (reply && !socket.destroyed) socket.write(reply);
      });
    }
  });
}

async function answer(message: Buffer, pool: pg.Pool, host: string): Promise<Buffer | null> {
  const [request, code] = [message.readInt32LE(4), message.readInt32LE(12)];
  if (code === OP_QUERY)
    return framed(request, OP_REPLY, [Buffer.alloc(16), int32(1), serialize(hello(host))]);
  if (code !== OP_MSG) return null;
  const command = commandOf(message);
  const body = await run(command, pool, host).catch((error: unknown) => failed(error));
  return framed(request, OP_MSG, [int32(0), Buffer.from([0]), serialize(body)]);
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  return bytes;
}

function framed(request: number, code: number, parts: readonly Uint8Array[]): Buffer {
  // OP_REPLY: flags, cursor and start are the first 16 bytes, then the number of documents.
  const payload = Buffer.concat(parts);
  return Buffer.concat([int32(16 + payload.length), int32(0), int32(request), int32(code), payload]);
}

/** The command of an OP_MSG: one document, and documents of sequences under their names. */
function commandOf(message: Buffer): Document {
  let command: Document = {};
  const sequences: Record<string, Document[]> = {};
  for (let at = 20; at < message.length; ) {
    const kind = message[at] as number;
    const size = message.readInt32LE(at + 1);
    const section = message.subarray(at + 1, at + 1 + size);
    if (kind === 0) command = deserialize(section, { promoteValues: false });
    else {
      const end = section.indexOf(0, 4);
      const documents: Document[] = [];
      for (let from = end + 1; from < section.length; from += section.readInt32LE(from))
        documents.push(
          deserialize(section.subarray(from, from + section.readInt32LE(from)), { promoteValues: false }),
        );
      sequences[section.toString("utf8", 4, end)] = documents;
    }
    at += 1 + size;
  }
  return { ...command, ...sequences };
}

function hello(host: string): Document {
  return {
    ok: 1,
    helloOk: true,
    ismaster: true,
    isWritablePrimary: true,
    msg: host,
    maxBsonObjectSize: 16_777_216,
    maxMessageSizeBytes: 48_000_000,
    maxWriteBatchSize: 100_000,
    minWireVersion: 0,
    maxWireVersion: 21,
    localTime: new Date(),
    readOnly: false,
  };
}

const FUNCTIONS: Readonly<Record<string, string>> = {
  insert: "p_result::bytea as r from documentdb_api.insert($1, $2::bytea::documentdb_core.bson)",
  update: "p_result::bytea as r from documentdb_api.update($1, $2::bytea::documentdb_core.bson)",
  delete: "p_result::bytea as r from documentdb_api.delete($1, $2::bytea::documentdb_core.bson)",
  findAndModify:
    "p_result::bytea as r from documentdb_api.find_and_modify($1, $2::bytea::documentdb_core.bson)",
  find: "cursorpage::bytea as r from documentdb_api.find_cursor_first_page($1, $2::bytea::documentdb_core.bson)",
  aggregate:
    "cursorpage::bytea as r from documentdb_api.aggregate_cursor_first_page($1, $2::bytea::documentdb_core.bson)",
  createIndexes:
    "documentdb_api_internal.create_indexes_non_concurrently($1, $2::bytea::documentdb_core.bson, true)::bytea as r",
};

async function run(command: Document, pool: pg.Pool, host: string): Promise<Document> {
  const [name] = Object.keys(command) as [string];
  if (["hello", "ismaster", "isMaster"].includes(name)) return hello(host);
  if (["ping", "endSessions", "killCursors", "abortTransaction"].includes(name)) return { ok: 1 };
  const database = String(command.$db);
  if (name === "drop") {
    await pool.query("select documentdb_api.drop_collection($1, $2)", [database, String(command[name])]);
    return { ok: 1 };
  }
  const text = FUNCTIONS[name];
  if (text === undefined)
    return { ok: 0, code: 59, codeName: "CommandNotFound", errmsg: `no such command: ${name}` };
  const { $db, lsid, $clusterTime, txnNumber, writeConcern, readConcern, $readPreference, ...spec } = command;
  if (name === "find") spec.batchSize = ONE_PAGE;
  if (name === "aggregate") spec.cursor = { batchSize: ONE_PAGE };
  const { rows } = await withRetries(() =>
    pool.query(`select ${text}`, [database, Buffer.from(serialize(spec))]),
  );
  const found = deserialize(rows[0].r as Buffer, { promoteValues: false });
  return name === "createIndexes" ? { ok: 1, ...found } : withCodes(found);
}

/** MongoDB itself repeats a write that met another one. PostgreSQL leaves that to its caller. */
async function withRetries<Answer>(query: () => Promise<Answer>): Promise<Answer> {
  for (let tries = 1; ; tries++) {
    try {
      return await query();
    } catch (error) {
      if (tries === RETRIES || !CONFLICTS.has(String((error as { code?: unknown }).code))) throw error;
    }
  }
}

function withCodes(found: Document): Document {
  const errors = found.writeErrors as Document[] | undefined;
  for (const error of errors ?? []) if (Number(error.code) === DUPLICATE) error.code = DUPLICATE_KEY;
  if (Number(found.code) === DUPLICATE) found.code = DUPLICATE_KEY;
  return found;
}

function failed(error: unknown): Document {
  const { message, code } = error as { message: string; code?: string };
  const isDuplicate = code === "23505" || code === "23P01" || /duplicate key/i.test(message);
  return { ok: 0, code: isDuplicate ? DUPLICATE_KEY : 1, errmsg: message };
}
