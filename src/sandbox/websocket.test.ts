import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeFrame, FrameDecoder } from "./websocket.ts";

/** As a server writes it: without a mask. */
function served(text: string): Buffer {
  const body = Buffer.from(text);
  const { length } = body;
  if (length < 126) return Buffer.concat([Buffer.from([0x81, length]), body]);
  const header = Buffer.alloc(length <= 0xffff ? 4 : 10);
  header[0] = 0x81;
  header[1] = length <= 0xffff ? 126 : 127;
  if (length <= 0xffff) header.writeUInt16BE(length, 2);
  else header.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([header, body]);
}

describe("frames of a debugger", () => {
  it("are read for every split and length", () => {
    const texts = fc.array(fc.oneof(fc.string(), fc.constantFrom("", "x".repeat(200), "y".repeat(70_000))), {
      maxLength: 5,
    });
    fc.assert(
      fc.property(texts, fc.integer({ min: 100, max: 5_000 }), (sent, cut) => {
        const bytes = Buffer.concat(sent.map(served));
        const decoder = new FrameDecoder();
        const read: string[] = [];
        for (let from = 0; from < bytes.length; from += cut)
          read.push(...decoder.push(bytes.subarray(from, from + cut)));
        expect(read).toEqual(sent.map((text) => Buffer.from(text).toString()));
      }),
    );
  });

  it("a frame with too large a length is refused before it arrives", () => {
    const header = Buffer.alloc(10);
    header[0] = 0x81;
    header[1] = 127;
    header.writeBigUInt64BE(2n ** 40n, 2);
    expect(() => [...new FrameDecoder().push(header)]).toThrow("too large");
  });

  it("a frame of a client carries a mask", () => {
    for (const size of [5, 125, 126, 60_000]) {
      const frame = encodeFrame("x".repeat(size));
      expect((frame[1] as number) & 0x80).toBe(0x80);
      expect(frame.length).toBe(size + (size < 126 ? 6 : 8));
    }
    expect(() => encodeFrame("x".repeat(70_000))).toThrow(RangeError);
  });
});
