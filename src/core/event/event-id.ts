import type { Instant } from "../time.ts";

/**
 * The id of an event, computed when it is read from its instant and a hash of its position, in the form of a UUIDv7.
 * Nothing is stored for it, and every read gives the same id.
 */
export function eventId(at: Instant, text: string): string {
  const [a, b, c] = hash(text);
  const time = at.toString(16).padStart(12, "0");
  const high = (a & 0xfff).toString(16).padStart(3, "0");
  const low = (0x8000 | ((a >>> 12) & 0x3fff)).toString(16);
  const tail = hex(b) + hex(c).slice(0, 4);
  return `evt_${time.slice(0, 8)}-${time.slice(8)}-7${high}-${low}-${tail}`;
}

function hex(bits: number): string {
  return bits.toString(16).padStart(8, "0");
}

/**
 * A multiply-and-mix hash of 96 bits. It protects no secrets, but two positions of a stream do not collide by chance.
 */
function hash(text: string): [number, number, number] {
  let [a, b, c] = [1_779_033_703, 3_144_134_277, 1_013_904_242];
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    a = b ^ Math.imul(a ^ code, 597_399_067);
    b = c ^ Math.imul(b ^ code, 2_869_860_233);
    c = a ^ Math.imul(c ^ code, 951_274_213);
  }
  a = Math.imul(c ^ (a >>> 18), 597_399_067);
  b = Math.imul(a ^ (b >>> 22), 2_869_860_233);
  c = Math.imul(b ^ (c >>> 17), 951_274_213);
  return [(a ^ b ^ c) >>> 0, (b ^ a) >>> 0, (c ^ a) >>> 0];
}
