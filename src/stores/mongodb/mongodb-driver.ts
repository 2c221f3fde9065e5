/*
 * The part of the official driver that the store uses. Its own types are not named here, so that a program without the
 * package compiles, and a fake can take its place in tests.
 */

export type MongoFilter = Readonly<Record<string, unknown>>;

export interface MongoCollection {
  createIndexes(indexes: readonly object[]): Promise<unknown>;
  insertMany(documents: object[], options: { ordered: boolean }): Promise<unknown>;
  findOneAndReplace(filter: MongoFilter, document: object, options: { upsert: boolean }): Promise<unknown>;
  find(filter: MongoFilter): MongoCursor;
  updateOne(filter: MongoFilter, change: object): Promise<{ readonly matchedCount: number }>;
  updateMany(filter: MongoFilter, change: object): Promise<{ readonly matchedCount: number }>;
  deleteOne(filter: MongoFilter): Promise<{ readonly deletedCount: number }>;
  deleteMany(filter: MongoFilter): Promise<{ readonly deletedCount: number }>;
  findOneAndDelete(filter: MongoFilter): Promise<object | null>;
  countDocuments(filter: MongoFilter): Promise<number>;
  readonly writeConcern?:
    | { readonly w?: unknown; readonly journal?: unknown; readonly j?: unknown }
    | undefined;
}

export interface MongoCursor {
  sort(order: Readonly<Record<string, 1>>): MongoCursor;
  limit(count: number): MongoCursor;
  toArray(): Promise<object[]>;
}

export interface MongoDatabase {
  collection(name: string, options: object): MongoCollection;
  command(command: object): Promise<object>;
}

export interface MongoClientLike {
  db(name?: string): MongoDatabase;
  connect(): Promise<unknown>;
  close(): Promise<void>;
}

const DUPLICATE_KEY = 11_000;

export function isDuplicateKey(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === DUPLICATE_KEY;
}

/** The positions of a batch that an unique index refused; rethrows any other error. */
export function refusedPositions(error: unknown): Set<number> {
  const { writeErrors } = (error ?? {}) as { writeErrors?: unknown };
  const each = (Array.isArray(writeErrors) ? writeErrors : []) as { code?: unknown; index?: number }[];
  if (!isDuplicateKey(error) || each.length === 0 || each.some(({ code }) => code !== DUPLICATE_KEY))
    throw error;
  return new Set(each.map(({ index }) => index as number));
}
