/** What people see in place of a redacted value. */
const REDACTED = "[redacted]";

/** A path into a document: names of fields, places in lists, and `*` for all of them. */
export type Path = readonly string[];

/** A shorter text occurs by chance, and replacing it would spoil every sentence. */
const SHORTEST_SECRET = 4;
/** The most values of one document that are searched for in other texts. */
const MOST_SECRETS = 200;

/** A copy of a JSON value with what the paths lead to replaced. An empty path is the whole value. */
export function redactValue(value: unknown, paths: readonly Path[]): unknown {
  return paths.reduce((copy, path) => redactAt(copy, path, 0), value);
}

function redactAt(value: unknown, path: Path, depth: number): unknown {
  const name = path[depth];
  if (name === undefined) return REDACTED;
  if (typeof value !== "object" || value === null) return value;
  const leadsTo = (key: string) => name === "*" || name === key;
  if (Array.isArray(value))
    return value.map((item, index) => (leadsTo(String(index)) ? redactAt(item, path, depth + 1) : item));
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, leadsTo(key) ? redactAt(item, path, depth + 1) : item]),
  );
}

/** The texts and numbers at these paths, the longest first. */
export function secretsIn(value: unknown, paths: readonly Path[]): readonly string[] {
  const found = new Set<string>();
  for (const path of paths) collect(value, path, 0, found);
  return [...found].sort((a, b) => b.length - a.length);
}

function collect(value: unknown, path: Path, depth: number, found: Set<string>): void {
  if (found.size >= MOST_SECRETS) return;
  if (typeof value !== "object" || value === null) {
    const isSecret = depth >= path.length && (typeof value === "string" || typeof value === "number");
    if (isSecret && String(value).length >= SHORTEST_SECRET) found.add(String(value));
    return;
  }
  const name = depth < path.length ? path[depth] : "*";
  for (const [key, item] of Object.entries(value))
    if (name === "*" || name === key) collect(item, path, depth + 1, found);
}

/** The text without these values. */
export function scrubText(text: string, secrets: readonly string[]): string {
  return secrets.reduce((rest, secret) => rest.replaceAll(secret, REDACTED), text);
}

/** A copy of a JSON value without these values: in its texts and names of fields, and as numbers. */
export function scrubValue(value: unknown, secrets: readonly string[]): unknown {
  if (secrets.length === 0) return value;
  if (typeof value === "string") return scrubText(value, secrets);
  if (typeof value === "number") return secrets.includes(String(value)) ? REDACTED : value;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => scrubValue(item, secrets));
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [scrubText(key, secrets), scrubValue(item, secrets)]),
  );
}

/** A copy in which the marker at a redacted path stands for the value of `source` at the same path. */
export function restoreValue(value: unknown, source: unknown, paths: readonly Path[]): unknown {
  return paths.reduce((copy, path) => restoreAt(copy, source, path, 0), value);
}

function restoreAt(value: unknown, source: unknown, path: Path, depth: number): unknown {
  const name = path[depth];
  if (name === undefined) return value === REDACTED ? source : value;
  if (typeof value !== "object" || value === null || typeof source !== "object" || source === null)
    return value;
  const at = (key: string, item: unknown) =>
    (name === "*" || name === key) && Object.hasOwn(source, key)
      ? restoreAt(item, (source as Record<string, unknown>)[key], path, depth + 1)
      : item;
  if (Array.isArray(value)) return value.map((item, index) => at(String(index), item));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, at(key, item)]));
}
