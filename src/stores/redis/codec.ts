/*
 * MessagePack, as far as the functions of the store need it: whole numbers, texts, lists, true, and false for null.
 */

export type Packed = string | number | boolean | null | undefined | Raw | readonly Packed[];

/** Bytes that are written as a text. */
export type Raw = Uint8Array;

const FIRST_SIZE = 4_096;
const UINT_32 = 2 ** 32;

/** Writes values into one buffer that grows. */
class Writer {
  #buffer = Buffer.allocUnsafe(FIRST_SIZE);
  #at = 0;

  bytes(): Buffer {
    return Buffer.from(this.#buffer.subarray(0, this.#at));
  }

  reset(): void {
    this.#at = 0;
    if (this.#buffer.length > 256 * FIRST_SIZE) this.#buffer = Buffer.allocUnsafe(FIRST_SIZE);
  }

  write(value: Packed): void {
    if (typeof value === "string") this.#text(value);
    else if (typeof value === "number") this.#number(value);
    else if (value === null || value === undefined || value === false) this.#byte(0xc2);
    else if (value === true) this.#byte(0xc3);
    else if (value instanceof Uint8Array) this.#raw(value);
    else this.#list(value);
  }

  #room(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(2 * this.#buffer.length, this.#at + bytes));
    this.#buffer.copy(larger, 0, 0, this.#at);
    this.#buffer = larger;
  }

  #byte(byte: number): void {
    this.#room(1);
    this.#buffer[this.#at++] = byte;
  }

  #number(value: number): void {
    this.#room(9);
    const buffer = this.#buffer;
    if (Number.isInteger(value) && value >= 0 && value < 128) {
      buffer[this.#at++] = value;
    } else if (Number.isInteger(value) && value >= 0 && value < UINT_32) {
      buffer[this.#at++] = 0xce;
      this.#at = buffer.writeUInt32BE(value, this.#at);
    } else if (Number.isSafeInteger(value) && value >= 0) {
      buffer[this.#at++] = 0xcf;
      this.#at = buffer.writeUInt32BE(Math.floor(value / UINT_32), this.#at);
      this.#at = buffer.writeUInt32BE(value % UINT_32, this.#at);
    } else {
      buffer[this.#at++] = 0xcb;
      this.#at = buffer.writeDoubleBE(value, this.#at);
    }
  }

  #head(length: number, short: number, shortest: number, head16: number): void {
    this.#room(5);
    const buffer = this.#buffer;
    if (length < short) buffer[this.#at++] = shortest | length;
    else if (length < 0x1_0000) {
      buffer[this.#at++] = head16;
      this.#at = buffer.writeUInt16BE(length, this.#at);
    } else {
      buffer[this.#at++] = head16 + 1;
      this.#at = buffer.writeUInt32BE(length, this.#at);
    }
  }

  #text(text: string): void {
    const length = Buffer.byteLength(text);
    this.#head(length, 32, 0xa0, 0xda);
    this.#room(length);
    this.#at += this.#buffer.write(text, this.#at);
  }

  #raw(bytes: Uint8Array): void {
    this.#head(bytes.length, 32, 0xa0, 0xda);
    this.#room(bytes.length);
    this.#buffer.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  #list(list: readonly Packed[]): void {
    this.#head(list.length, 16, 0x90, 0xdc);
    for (const item of list) this.write(item);
  }
}

const writer = new Writer();

/** A value as bytes. */
export function encode(value: Packed): Buffer {
  writer.reset();
  writer.write(value);
  return writer.bytes();
}

/** Values one after the other, without a list around them. */
export function encodeAll(values: readonly Packed[]): Buffer {
  writer.reset();
  for (const value of values) writer.write(value);
  return writer.bytes();
}

export type Unpacked = string | number | boolean | null | Unpacked[];

/** Reads values one after the other. A function answers with as many as it likes. */
export class Reader {
  readonly #buffer: Buffer;
  #at = 0;

  constructor(buffer: Buffer) {
    this.#buffer = buffer;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#buffer.length;
  }

  read(): Unpacked {
    const buffer = this.#buffer;
    const head = buffer[this.#at++] as number;
    if (head < 0x80) return head;
    if (head < 0x90) throw new Error(`the reply has a map (${head})`);
    if (head < 0xa0) return this.#list(head & 0x0f);
    if (head < 0xc0) return this.#text(head & 0x1f);
    if (head >= 0xe0) return head - 0x100;
    switch (head) {
      case 0xc0:
      case 0xc2:
        return null;
      case 0xc3:
        return true;
      case 0xcb:
        return buffer.readDoubleBE(this.#take(8));
      case 0xca:
        return buffer.readFloatBE(this.#take(4));
      case 0xcc:
        return buffer[this.#at++] as number;
      case 0xcd:
        return buffer.readUInt16BE(this.#take(2));
      case 0xce:
        return buffer.readUInt32BE(this.#take(4));
      case 0xcf:
        return this.#long(buffer.readUInt32BE(this.#at));
      case 0xd0:
        return buffer.readInt8(this.#at++);
      case 0xd1:
        return buffer.readInt16BE(this.#take(2));
      case 0xd2:
        return buffer.readInt32BE(this.#take(4));
      case 0xd3:
        return this.#long(buffer.readInt32BE(this.#at));
      case 0xc4:
      case 0xd9:
        return this.#text(buffer[this.#at++] as number);
      case 0xc5:
      case 0xda:
        return this.#text(buffer.readUInt16BE(this.#take(2)));
      case 0xc6:
      case 0xdb:
        return this.#text(buffer.readUInt32BE(this.#take(4)));
      case 0xdc:
        return this.#list(buffer.readUInt16BE(this.#take(2)));
      case 0xdd:
        return this.#list(buffer.readUInt32BE(this.#take(4)));
      default:
        throw new Error(`the reply has an unknown value (${head})`);
    }
  }

  /** The position of the next bytes, which are read then. */
  #take(bytes: number): number {
    const at = this.#at;
    this.#at += bytes;
    return at;
  }

  #long(high: number): number {
    const low = this.#buffer.readUInt32BE(this.#at + 4);
    this.#at += 8;
    return high * UINT_32 + low;
  }

  #text(length: number): string {
    const from = this.#at;
    this.#at += length;
    return this.#buffer.toString("utf8", from, this.#at);
  }

  #list(length: number): Unpacked[] {
    const list: Unpacked[] = new Array(length);
    for (let index = 0; index < length; index++) list[index] = this.read();
    return list;
  }
}

/** The first value of an answer. */
export function decode(buffer: Buffer): Unpacked {
  return new Reader(buffer).read();
}
