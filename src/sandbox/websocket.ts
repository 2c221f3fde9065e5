/** The part of WebSocket frames that a debugger on loopback needs: unfragmented texts. */

const TEXT = 0x81;
const MASKED = 0x80;

/** A text frame of a client. Servers require the mask; on loopback it protects nothing. */
export function encodeFrame(text: string): Buffer {
  const body = Buffer.from(text, "utf8");
  if (body.length > 0xffff) throw new RangeError("encodeFrame: more than 65,535 bytes; send a shorter text");
  const header =
    body.length < 126
      ? Buffer.from([TEXT, MASKED | body.length])
      : Buffer.from([TEXT, MASKED | 126, body.length >> 8, body.length & 0xff]);
  return Buffer.concat([header, Buffer.alloc(4), body]);
}

/** A stack has a few kilobytes. A debugger never sends more than this. */
const LONGEST_ANSWER = 1_000_000;

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
    const header = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (data.length < header) return undefined;
    const length =
      short < 126 ? short : short === 126 ? data.readUInt16BE(2) : Number(data.readBigUInt64BE(2));
    if (length > LONGEST_ANSWER) throw new RangeError("its answer is too large");
    if (data.length < header + length) return undefined;
    this.#rest = data.subarray(header + length);
    return data.toString("utf8", header, header + length);
  }
}
