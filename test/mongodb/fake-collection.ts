import { Query } from "mingo";
import type {
  MongoClientLike,
  MongoCollection,
  MongoCursor,
  MongoFilter,
} from "../../src/stores/mongodb/mongodb-driver.ts";

type Document = Record<string, unknown>;

/** Documents of one collection, shared by all its handles. */
export interface FakeData {
  documents: Document[];
  indexes: {
    readonly key: Record<string, 1>;
    readonly unique?: boolean;
    readonly partialFilterExpression?: object;
  }[];
}

/**
 * A collection in memory for the shape of what the store asks: filters by mingo, unique and partial indexes, and the
 * errors of the driver. Every call is one step, so it shows nothing about races.
 */
function fakeCollection(data: FakeData): MongoCollection {
  const duplicate = (extra: object = {}) =>
    Object.assign(new Error("E11000 duplicate key"), { code: 11_000, ...extra });
  const breaks = (document: Document, other?: Document) =>
    data.indexes.some(({ key, unique, partialFilterExpression: partial = {} }) => {
      if (!unique || !test(partial as MongoFilter)(document)) return false;
      return data.documents.some(
        (one) =>
          one !== other &&
          test(partial as MongoFilter)(one) &&
          Object.keys(key).every((name) => one[name] === document[name]),
      );
    });
  const change = (document: Document, { $set = {}, $inc = {}, ...other }: Record<string, Document>) => {
    if (Object.keys(other).length > 0) throw new Error(`the fake does not know ${Object.keys(other)}`);
    Object.assign(document, structuredClone($set));
    for (const [name, by] of Object.entries($inc))
      document[name] = (document[name] as number) + (by as number);
  };
  const remove = (found: readonly Document[]) => {
    data.documents = data.documents.filter((one) => !found.includes(one));
    return { deletedCount: found.length };
  };
  return {
    async createIndexes(indexes) {
      data.indexes = structuredClone(indexes) as FakeData["indexes"];
    },
    async insertMany(documents) {
      const writeErrors = documents.flatMap((document, index) => {
        if (breaks(document as Document)) return [{ index, code: 11_000 }];
        data.documents.push(structuredClone(document) as Document);
        return [];
      });
      if (writeErrors.length > 0) throw duplicate({ writeErrors });
    },
    async findOneAndReplace(filter, document, { upsert }) {
      const old = data.documents.find(test(filter));
      if (breaks(document as Document, old)) throw duplicate();
      if (old) data.documents[data.documents.indexOf(old)] = structuredClone(document) as Document;
      else if (upsert) data.documents.push(structuredClone(document) as Document);
      return old ?? null;
    },
    find: (filter) => cursorOn(data, test(filter)),
    async updateOne(filter, wanted) {
      const found = data.documents.find(test(filter));
      if (found) change(found, wanted as Record<string, Document>);
      return { matchedCount: found ? 1 : 0 };
    },
    async updateMany(filter, wanted) {
      const found = data.documents.filter(test(filter));
      for (const one of found) change(one, wanted as Record<string, Document>);
      return { matchedCount: found.length };
    },
    deleteOne: async (filter) => remove(data.documents.filter(test(filter)).slice(0, 1)),
    deleteMany: async (filter) => remove(data.documents.filter(test(filter))),
    async findOneAndDelete(filter) {
      const found = data.documents.find(test(filter)) ?? null;
      if (found) remove([found]);
      return found;
    },
    countDocuments: async (filter) => data.documents.filter(test(filter)).length,
    writeConcern: undefined,
  };
}

/** Whether documents match a filter, as mingo reads it. */
function test(filter: MongoFilter): (document: Document) => boolean {
  const query = new Query(filter as never);
  return (document) => query.test(document as never);
}

function cursorOn(data: FakeData, isWanted: (document: Document) => boolean): MongoCursor {
  let order: Readonly<Record<string, 1>> = {};
  let most = Number.POSITIVE_INFINITY;
  const cursor = {
    sort: (wanted: Readonly<Record<string, 1>>) => {
      order = wanted;
      return cursor;
    },
    limit: (count: number) => {
      most = count;
      return cursor;
    },
    async toArray() {
      const found = data.documents.filter(isWanted);
      found.sort((a, b) => Object.keys(order).reduce((sum, name) => sum || compare(a[name], b[name]), 0));
      return structuredClone(found.slice(0, most));
    },
  };
  return cursor;
}

/** As the server compares: texts by their UTF-8 bytes. */
function compare(a: unknown, b: unknown): number {
  if (typeof a === "string" && typeof b === "string") return Buffer.compare(Buffer.from(a), Buffer.from(b));
  return (a as number) - (b as number);
}

/** A client on fake data. `writeConcern` is what its options would say. */
export function fakeClient(
  data: FakeData = { documents: [], indexes: [] },
  writeConcern?: MongoCollection["writeConcern"],
): MongoClientLike & { readonly asked: object[] } {
  const asked: object[] = [];
  return {
    asked,
    db: () => ({
      collection: (_name, options) => {
        asked.push(options);
        return { ...fakeCollection(data), writeConcern };
      },
      command: async () => ({ localTime: new Date() }),
    }),
    connect: async () => {},
    close: async () => {},
  };
}
