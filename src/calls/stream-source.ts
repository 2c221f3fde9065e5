import { refuse } from "../core/errors.ts";

/** What a source under limits gets, if it is made by a function. */
export interface StreamContext {
  /** Aborts when a limit has passed or the consumer has stopped. */
  readonly signal: AbortSignal;
}

type Readable<Item> = AsyncIterable<Item> | ReadableStream<Item>;
/** An async iterable, a stream of Node or of the Web, or a function that makes one. */
export type StreamSource<Item> = Readable<Item> | ((context: StreamContext) => Readable<Item>);

/** A source of items that can be stopped while somebody waits for its next one. */
export interface Source<Item> {
  next(): Promise<IteratorResult<Item, undefined>>;
  /** Called once at most. Resolves when the source has cleaned up. */
  stop(reason: unknown): Promise<unknown>;
}

const DONE = { done: true, value: undefined } as const;

export function sourceOf<Item>(given: StreamSource<Item>, context: StreamContext): Source<Item> {
  const readable = typeof given === "function" ? given(context) : given;
  if (isWebStream(readable)) return webSource(readable);
  const iterate = (readable as Partial<AsyncIterable<Item>> | null)?.[Symbol.asyncIterator];
  if (typeof iterate !== "function")
    throw refuse("invalid_option", "limitStream", readable, "pass an async iterable or a stream");
  const iterator = iterate.call(readable);
  const { destroy } = readable as { destroy?: unknown };
  return {
    next: async () => resultOf<Item>(await iterator.next()),
    // `return` of a generator waits for the item under way. A stream of Node can be destroyed at once.
    stop:
      typeof destroy === "function"
        ? async () => void destroy.call(readable)
        : async () => iterator.return?.(),
  };
}

/** A plain copy, because a source may give anything. */
function resultOf<Item>(given: IteratorResult<Item, unknown>): IteratorResult<Item, undefined> {
  if (typeof given !== "object" || given === null)
    throw refuse("invalid_option", "limitStream", given, "next() of the source must give { done, value }");
  return given.done ? DONE : { done: false, value: given.value };
}

function isWebStream<Item>(readable: Readable<Item>): readable is ReadableStream<Item> {
  return typeof (readable as Partial<ReadableStream<Item>> | null)?.getReader === "function";
}

/** Read by a reader, since the stream's own iterator cannot be stopped while an item is under way. */
function webSource<Item>(stream: ReadableStream<Item>): Source<Item> {
  const reader = stream.getReader();
  return {
    next: async () => {
      const { done, value } = await reader.read();
      if (!done) return { done, value };
      reader.releaseLock();
      return DONE;
    },
    stop: (reason) => reader.cancel(reason).finally(() => reader.releaseLock()),
  };
}
