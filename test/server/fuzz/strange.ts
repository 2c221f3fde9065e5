/** Values that clients send by mistake or on purpose: everything is drawn from a seed, so that a finding replays. */
import { type Random, randomInt } from "../../../src/core/random.ts";

export function pick<Value>(random: Random, values: readonly Value[]): Value {
  return values[randomInt(random, values.length)] as Value;
}

const NUMBERS = [
  0,
  -0,
  1,
  -1,
  0.5,
  1.5,
  -1.5,
  1e-9,
  59,
  60,
  1_000,
  2 ** 31 - 1,
  2 ** 31,
  2 ** 32,
  2 ** 45,
  2 ** 53 - 1,
  2 ** 53,
  -(2 ** 53),
  1e21,
  1e308,
  -1e308,
  5e-324,
  315_360_000,
  315_360_001,
  315_360_000_000,
  315_360_000_001,
];

const TIMES = [
  "PT1S",
  "PT0S",
  "-PT1S",
  "PT",
  "P",
  "P1Y",
  "P1M",
  "P3650D",
  "P3651D",
  "PT99999999999999999999S",
  "PT1.5S",
  "pt1s",
  "+PT2S",
  "+PT",
  "+P10Y",
  "+PT0S",
  "+PT-1S",
  "30s",
  "5m",
  "none",
  "unbounded",
  "NaN",
  "Infinity",
  "1e3",
  "0x10",
  "2030-01-01T00:00:00Z",
  "2030-01-01T00:00:00",
  "2030-02-30T00:00:00Z",
  "2030-01-01T24:00:00Z",
  "1969-12-31T23:59:59Z",
  "9999-12-31T23:59:59Z",
  "0000-00-00T00:00:00Z",
  "2030-01-01T00:00:00+99:99",
  "2030-01-01T00:00:00.123456789123Z",
  "+275760-09-13T00:00:00Z",
  "2030-01-01 00:00:00Z",
  "now",
  "2016-12-31T23:59:60Z",
];

const TEXTS = [
  "",
  " ",
  "a",
  "A",
  "default",
  "DEFAULT",
  "-a",
  "a.b",
  ".",
  "..",
  "../../etc/passwd",
  "a b",
  "ü",
  "\u0000",
  "\ud800",
  "\udfff\ud800",
  "👩‍👩‍👧‍👦",
  "\u202e",
  "\ufeff",
  "<script>alert(1)</script>",
  "'; DROP TABLE jobs; --",
  "%s%n",
  "#{x}",
  "{{x}}",
  "__proto__",
  "constructor",
  "toString",
  "hasOwnProperty",
  "valueOf",
  "then",
  "null",
  "undefined",
  "true",
  "-1",
  "$where",
  "x".repeat(127),
  "x".repeat(129),
  "x".repeat(256),
  "x".repeat(5_000),
  "\n\r\t",
  "a\u0000b",
  "\\",
  '"',
  "/",
  "?",
  "#",
  "%",
  "%00",
  "%ff",
];

const KEYS = [
  "type",
  "args",
  "id",
  "queue",
  "options",
  "meta",
  "retry",
  "timeout",
  "timeout_ms",
  "total_timeout",
  "enqueue_ttl",
  "grace_period",
  "heartbeat_timeout",
  "visibility_timeout_ms",
  "scheduled_at",
  "expires_at",
  "priority",
  "job_id",
  "fence",
  "worker_id",
  "state",
  "error",
  "result",
  "progress",
  "count",
  "queues",
  "max_attempts",
  "jobs",
  "unique",
  "rate_limit",
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "length",
  "then",
  "",
  "ü",
  "\u0000",
  "x".repeat(300),
];

const ID = "0191f0e0-0000-7000-8000-0000000000";

export function strangeId(random: Random, known: readonly string[]): string {
  if (known.length > 0 && random() < 0.6) return pick(random, known);
  const shapes = [
    () => ID + randomInt(random, 256).toString(16).padStart(2, "0"),
    () => `${ID}zz`,
    () => `${ID.toUpperCase()}AA`,
    () => pick(random, TEXTS),
    () => String(pick(random, NUMBERS)),
    () => "00000000-0000-4000-8000-000000000000",
  ];
  return pick(random, shapes)();
}

export function strangeValue(random: Random, depth = 0): unknown {
  const roll = random();
  if (roll < 0.2) return pick(random, NUMBERS);
  if (roll < 0.4) return pick(random, TEXTS);
  if (roll < 0.55) return pick(random, TIMES);
  if (roll < 0.65) return pick(random, [null, true, false]);
  if (depth > 4) return [];
  const size = randomInt(random, 4);
  if (roll < 0.8) return Array.from({ length: size }, () => strangeValue(random, depth + 1));
  // Entries are defined and not set, so that "__proto__" becomes a key like in a parser.
  return Object.fromEntries(
    Array.from({ length: size }, () => [pick(random, KEYS), strangeValue(random, depth + 1)]),
  );
}

/** Changes a sound value in a few places: a key replaced, removed, added, a list grown. */
export function mutated(random: Random, value: unknown, depth = 0): unknown {
  if (random() < 0.12) return strangeValue(random, depth);
  if (Array.isArray(value)) {
    const items = value.map((item) => mutated(random, item, depth + 1));
    if (random() < 0.1) items.push(strangeValue(random, depth + 1));
    return items;
  }
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).flatMap(([key, item]) => {
    if (random() < 0.06) return [];
    const name = random() < 0.03 ? pick(random, KEYS) : key;
    return [[name, mutated(random, item, depth + 1)] as const];
  });
  if (random() < 0.15) entries.push([pick(random, KEYS), strangeValue(random, depth + 1)]);
  return Object.fromEntries(entries);
}

/** Breaks a text where it is JSON no longer, or other JSON than before. */
export function brokenText(random: Random, text: string): string {
  const at = randomInt(random, text.length + 1);
  const breaks = [
    () => text.slice(0, at),
    () =>
      text.slice(0, at) +
      pick(random, ["\u0000", "}", "]", ",", '"', "\\", "\\u12", "1e999", "-", "//x", "NaN"]) +
      text.slice(at),
    () => `${"[".repeat(randomInt(random, 5_000))}${text}`,
    () => `{"a":`.repeat(randomInt(random, 300)) + text,
    () => text.replace("{", '{"type":1,"type":"twice",'),
    () => `\ufeff${text}`,
    () => `${text}${text}`,
    () => pick(random, TEXTS),
    () => `{${Array.from({ length: 500 }, (_, index) => `"k${index}":1`).join(",")}}`,
    () => "",
  ];
  return pick(random, breaks)();
}

/** A text for a URL: as it is, or with its letters written otherwise. */
export function strangePath(random: Random, text: string): string {
  const ways = [
    () => encodeURIComponent(text.toWellFormed()),
    () => text,
    () => `${encodeURI(text.toWellFormed())}%`,
    () => `%2e%2e%2f${text}`,
  ];
  return pick(random, ways)();
}

const PARAMETERS = ["limit", "cursor", "after", "types", "queue", "state", "page", "__proto__"];

/** A query, nearly always with parameters that the route reads: others are refused before their values are looked at. */
export function strangeQuery(random: Random, own: readonly string[]): string {
  const isOwn = random() < 0.95;
  const names = isOwn ? own : PARAMETERS;
  if (names.length === 0 || random() < 0.5) return "";
  const chosen = new Set(Array.from({ length: 1 + randomInt(random, 3) }, () => pick(random, names)));
  const pairs = Array.from(chosen, (name) => {
    const value = pick(random, [pick(random, TEXTS), String(pick(random, NUMBERS)), pick(random, TIMES)]);
    return `${name}=${strangePath(random, value)}`;
  });
  if (random() < 0.02) pairs.push(...pairs);
  return `?${pairs.join("&")}`;
}

const HEADERS: readonly (readonly [string, readonly string[]])[] = [
  [
    "Content-Type",
    [
      "text/plain",
      "",
      "application/json; charset=utf-16",
      "application/json;;;",
      "multipart/form-data",
      "x".repeat(3_000),
    ],
  ],
  ["OJS-Version", ["1.0", "2.0", "", "x".repeat(500), "1.0-rc.1", "NaN"]],
  ["X-Request-ID", ["a", "", "x".repeat(300), "<b>", "a b"]],
  ["Authorization", ["Bearer x", "Bearer", "Basic eDp5", "x".repeat(3_000)]],
  ["Content-Length", ["0", "1", "99999999", "-1", "1e3", "0x5", "18446744073709551616"]],
  ["Accept", ["*/*", "text/html", "x".repeat(500)]],
  ["Origin", ["null", "http://evil.example", "x", "http://localhost"]],
  ["X-OJS-Tenant", ["a", "", "__proto__"]],
  ["Transfer-Encoding", ["chunked", "gzip", "identity"]],
  ["Expect", ["100-continue", "x"]],
  ["Content-Encoding", ["gzip", "br", "x"]],
  ["Upgrade", ["websocket", "h2c"]],
];

export function strangeHeaders(random: Random): Record<string, string> {
  const headers: Record<string, string> = { "Content-Type": "application/json" };
  while (random() < 0.3) {
    const [name, values] = pick(random, HEADERS);
    headers[name] = pick(random, values);
  }
  return headers;
}
