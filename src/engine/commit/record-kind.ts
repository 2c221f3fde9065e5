import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import type { Effect, Guard, ListOrder, RecordKey, RecordRow, RecordStore } from "../../ports/store.ts";

/** A record with its decoded body. */
export interface StoredRecord<Body> {
  readonly name: string;
  readonly version: number;
  readonly body: Body;
}

interface Codec<Body> {
  decode(body: Json): Body;
  encode(body: Body): Json;
}

type Records = { readonly records: Pick<RecordStore, "load" | "list"> };

const PAGE = 500;

/** Records of one kind: their keys and the type of their bodies. */
export interface RecordKind<Body> {
  readonly kind: string;
  key(name: string): RecordKey;
  read(row: RecordRow): StoredRecord<Body>;
  load(store: Records, name: string): Promise<StoredRecord<Body> | null>;
  /** A page by name. `after` is the last name of the page before. */
  list(store: Records, after: string | null, limit: number, order?: ListOrder): Promise<StoredRecord<Body>[]>;
  /** The records by name, at most the first `most`. */
  all(store: Records, most?: number): Promise<Map<string, StoredRecord<Body>>>;
  put(name: string, body: Body, wakeAt: Instant | null): Extract<Effect, { put: unknown }>;
  remove(name: string): Effect;
  /** Refuses the unit unless the record has this version; 0 means that there is no record. */
  guard(name: string, version: number): Guard;
}

/** `codec` is left out if the body is JSON already. */
export function recordKind<Body>(kind: string, codec?: Codec<Body>): RecordKind<Body> {
  const decode = codec ? codec.decode : (body: Json) => body as Body;
  const encode = codec ? codec.encode : (body: Body) => body as Json;
  const key = (name: string): RecordKey => [kind, name];
  const read = (row: RecordRow): StoredRecord<Body> => ({
    name: row.key[1],
    version: row.version,
    body: decode(row.body),
  });
  const list = async ({ records }: Records, after: string | null, limit: number, order?: ListOrder) =>
    (await records.list(kind, after, limit, order)).map(read);
  return {
    kind,
    key,
    read,
    list,
    async load({ records }, name) {
      const [row] = await records.load([key(name)]);
      return row ? read(row) : null;
    },
    async all(store, most = Number.POSITIVE_INFINITY) {
      const all = new Map<string, StoredRecord<Body>>();
      for (let after: string | null = null; all.size < most; ) {
        const page: StoredRecord<Body>[] = await list(store, after, PAGE);
        for (const record of page) all.set(record.name, record);
        if (page.length < PAGE) break;
        after = (page.at(-1) as StoredRecord<Body>).name;
      }
      return all;
    },
    put: (name, body, wakeAt) => ({ put: key(name), body: encode(body), wakeAt }),
    remove: (name) => ({ delete: key(name) }),
    guard: (name, version) => ({ record: key(name), version }),
  };
}
