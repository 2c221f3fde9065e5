/** The two ends of a WebSocket frame, as far as a debugger on loopback needs them: unfragmented texts. */

const TEXT = 0x81;
const MASKED = 0x80;

/** A text frame of a client. The mask is there because servers ask for one; on loopback it guards nothing. */
export function encodeFrame(text: string): Buffer {
  const body = Buffer.from(text, "utf8");
  if (body.length > 0xffff) throw new RangeError("a frame of this size is never sent here");
  const head =
    body.length < 126
      ? Buffer.from([TEXT, MASKED | body.length])
      : Buffer.from([TEXT, MASKED | 126, body.length >> 8, body.length & 0xff]);
  return Buffer.concat([head, Buffer.alloc(4), body]);
}

/** A stack is a few kilobytes; whoever sends more than this is no debugger. */
const LONGEST_ANSWER = 1_000_000;

/** Reads the frames of a server. */
export class FrameDecoder {
  #rest: Buffer = Buffer.alloc(0);

  *push(chunk: Buffer): Iterable<string> {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    for (;;) {
      const frame = this.#next();
      if (frame === undefined) return;
      yield frame;
    }
  }

  #next(): string | undefined {
    const data = this.#rest;
    if (data.length < 2) return undefined;
    const short = (data[1] as number) & 0x7f;
    const head = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (data.length < head) return undefined;
    const length =
      short < 126 ? short : short === 126 ? data.readUInt16BE(2) : Number(data.readBigUInt64BE(2));
    if (length > LONGEST_ANSWER) throw new RangeError("what it answered is too large");
    if (data.length < head + length) return undefined;
    this.#rest = data.subarray(head + length);
    return data.toString("utf8", head, head + length);
  }
}
