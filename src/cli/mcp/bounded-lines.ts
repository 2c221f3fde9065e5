/** A line, or the fact that one was longer than allowed and was thrown away. */
export type BoundedLine = { readonly text: string } | { readonly tooLong: number };

/**
 * The lines of a stream of bytes, each at most `most` bytes long. A longer line is skipped without being held in memory,
 * and reported in its place.
 */
export async function* boundedLines(
  stream: AsyncIterable<Buffer>,
  most: number,
): AsyncGenerator<BoundedLine, void, undefined> {
  let parts: Buffer[] = [];
  let size = 0;
  const take = (): BoundedLine => {
    const line = size > most ? { tooLong: size } : { text: Buffer.concat(parts).toString("utf8") };
    parts = [];
    size = 0;
    return line;
  };
  const hold = (part: Buffer) => {
    size += part.length;
    if (size > most) parts = [];
    else parts.push(part);
  };
  for await (const chunk of stream) {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      hold(chunk.subarray(from, end));
      from = end + 1;
      yield take();
    }
    hold(chunk.subarray(from));
  }
  if (size > 0) yield take();
}
