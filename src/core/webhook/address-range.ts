/** An address as eight groups of 16 bits. IPv4 has the form ::ffff:a.b.c.d, in which its own ranges are looked up. */
type Groups = readonly number[];

/** A range of addresses: the first bits of its base. */
export interface AddressRange {
  readonly base: Groups;
  readonly bits: number;
}

const MAPPED = [0, 0, 0, 0, 0, 0xffff] as const;

/** The groups of an address in text; undefined if it is none. Only the four-part decimal form of IPv4 is one. */
export function readAddress(text: string): Groups | undefined {
  const v4 = readV4(text);
  if (v4) return [...MAPPED, ...v4];
  return text.includes(":") ? readV6(text) : undefined;
}

function readV4(text: string): readonly [number, number] | undefined {
  const parts = text.split(".");
  if (parts.length !== 4) return undefined;
  const bytes = parts.map((part) => (/^(0|[1-9]\d{0,2})$/.test(part) ? Number(part) : 256));
  if (bytes.some((byte) => byte > 255)) return undefined;
  const [a, b, c, d] = bytes as [number, number, number, number];
  return [(a << 8) | b, (c << 8) | d];
}

function readV6(text: string): Groups | undefined {
  const [plain] = text.split("%", 1) as [string];
  const halves = plain.split("::");
  if (halves.length > 2) return undefined;
  const [head, tail] = halves.map(groupsIn);
  if (!head || (halves.length === 2 && !tail)) return undefined;
  if (!tail) return head.length === 8 ? head : undefined;
  const missing = 8 - head.length - tail.length;
  return missing < 1 ? undefined : [...head, ...new Array<number>(missing).fill(0), ...tail];
}

/** The groups of one side of `::`. The last part may be written as IPv4. */
function groupsIn(half: string): number[] | undefined {
  if (half === "") return [];
  const groups: number[] = [];
  const parts = half.split(":");
  for (const [index, part] of parts.entries()) {
    if (/^[0-9a-f]{1,4}$/i.test(part)) groups.push(Number.parseInt(part, 16));
    else {
      const v4 = index === parts.length - 1 ? readV4(part) : undefined;
      if (!v4) return undefined;
      groups.push(...v4);
    }
  }
  return groups.length <= 8 ? groups : undefined;
}

/** A range such as `10.0.0.0/8` or `fd00::/8`, or one address; undefined if it is neither. */
export function readRange(text: string): AddressRange | undefined {
  const [address = "", length, rest] = text.split("/");
  const base = readAddress(address);
  if (!base || rest !== undefined) return undefined;
  const isV4 = !address.includes(":");
  const most = isV4 ? 32 : 128;
  if (length !== undefined && !/^\d{1,3}$/.test(length)) return undefined;
  const bits = length === undefined ? most : Number(length);
  return bits > most ? undefined : { base, bits: isV4 ? bits + 96 : bits };
}

export function isIn({ base, bits }: AddressRange, address: Groups): boolean {
  return base.every((group, index) => {
    const left = Math.min(16, Math.max(0, bits - index * 16));
    return (group ^ (address[index] as number)) >> (16 - left) === 0;
  });
}

const range = (text: string): AddressRange => readRange(text) as AddressRange;

/** What must not be called, by the registries of special addresses (RFC 6890 and its successors). */
const SPECIAL: readonly (readonly [kind: string, range: AddressRange])[] = [
  ["unspecified", range("0.0.0.0/8")],
  ["private", range("10.0.0.0/8")],
  ["shared (carrier-grade NAT)", range("100.64.0.0/10")],
  ["loopback", range("127.0.0.0/8")],
  ["link-local (cloud metadata)", range("169.254.0.0/16")],
  // A public address that leads to the host of the machine, in one large cloud.
  ["cloud metadata", range("168.63.129.16")],
  ["private", range("172.16.0.0/12")],
  ["reserved", range("192.0.0.0/24")],
  ["documentation", range("192.0.2.0/24")],
  ["reserved (6to4 relay)", range("192.88.99.0/24")],
  ["private", range("192.168.0.0/16")],
  ["benchmarking", range("198.18.0.0/15")],
  ["documentation", range("198.51.100.0/24")],
  ["documentation", range("203.0.113.0/24")],
  ["multicast", range("224.0.0.0/4")],
  ["reserved", range("240.0.0.0/4")],
];

const GLOBAL_V6 = range("2000::/3");
const SPECIAL_V6: readonly (readonly [kind: string, range: AddressRange])[] = [
  ["loopback", range("::1")],
  ["private (unique local)", range("fc00::/7")],
  ["link-local", range("fe80::/10")],
  ["multicast", range("ff00::/8")],
  ["documentation", range("2001:db8::/32")],
  ["documentation", range("3fff::/20")],
  ["reserved (Teredo, ORCHID, benchmarking)", range("2001::/23")],
];
const NAT64 = range("64:ff9b::/96");
const SIX_TO_FOUR = range("2002::/16");
const V4_MAPPED = range("::ffff:0:0/96");

/** Why an address must not be called: its kind. Null for a public one. */
export function forbiddenKind(text: string): string | null {
  const address = readAddress(text);
  if (!address) return "not an address";
  if (isIn(V4_MAPPED, address)) {
    const kind = SPECIAL.find(([, special]) => isIn(special, address))?.[0] ?? null;
    // ::ffff:8.8.8.8 is refused too: nobody publishes such an address, and firewalls read it differently.
    return kind ?? (text.includes(":") ? "an IPv4 address in the form of IPv6" : null);
  }
  const special = SPECIAL_V6.find(([, of]) => isIn(of, address));
  if (special) return special[0];
  if (isIn(NAT64, address)) return "NAT64, which leads to an IPv4 address";
  if (isIn(SIX_TO_FOUR, address)) return "6to4, which leads to an IPv4 address";
  return isIn(GLOBAL_V6, address) ? null : "not a public address";
}
