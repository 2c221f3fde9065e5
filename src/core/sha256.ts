/**
 * SHA-256 of a text's UTF-8, in hexadecimal (FIPS 180-4). It is written out because core imports nothing of Node. It
 * hashes only short texts (unique keys). Its test compares it with Node's.
 */
export function sha256(text: string): string {
  const bytes = padded(new TextEncoder().encode(text));
  const state = Uint32Array.from(START);
  const schedule = new Uint32Array(64);
  for (let offset = 0; offset < bytes.byteLength; offset += 64) {
    for (let i = 0; i < 16; i++) schedule[i] = bytes.getUint32(offset + 4 * i);
    compress(state, schedule);
  }
  return Array.from(state, (word) => word.toString(16).padStart(8, "0")).join("");
}

/** A one, zeros, and the length in bits, so that the total is a multiple of 64 bytes. */
function padded(message: Uint8Array): DataView {
  const { length } = message;
  const bytes = new Uint8Array((((length + 8) >>> 6) + 1) << 6);
  bytes.set(message);
  bytes[length] = 0x80;
  const view = new DataView(bytes.buffer);
  view.setUint32(bytes.length - 8, Math.floor(length / 2 ** 29));
  view.setUint32(bytes.length - 4, (length << 3) >>> 0);
  return view;
}

function compress(state: Uint32Array, w: Uint32Array): void {
  const at = (index: number) => w[index] as number;
  for (let i = 16; i < 64; i++) {
    const [a, b] = [at(i - 15), at(i - 2)];
    const s0 = rotated(a, 7) ^ rotated(a, 18) ^ (a >>> 3);
    const s1 = rotated(b, 17) ^ rotated(b, 19) ^ (b >>> 10);
    w[i] = at(i - 16) + s0 + at(i - 7) + s1;
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as Eight;
  for (let i = 0; i < 64; i++) {
    const s1 = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25);
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + (ROUNDS[i] as number) + at(i)) | 0;
    const s0 = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22);
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
  }
  for (const [index, word] of [a, b, c, d, e, f, g, h].entries())
    state[index] = (state[index] as number) + word;
}

type Eight = [number, number, number, number, number, number, number, number];

function rotated(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits));
}

/** The first 32 bits of the fractional parts of roots of the first primes: the constants of the standard. */
function fractions(count: number, root: (prime: number) => number): Uint32Array {
  const words: number[] = [];
  for (let n = 2; words.length < count; n++) {
    let isPrime = true;
    for (let m = 2; m * m <= n; m++) if (n % m === 0) isPrime = false;
    if (isPrime) words.push(Math.floor((root(n) % 1) * 2 ** 32));
  }
  return Uint32Array.from(words);
}

const START = fractions(8, Math.sqrt);
const ROUNDS = fractions(64, Math.cbrt);
