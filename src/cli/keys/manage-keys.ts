import { existsSync } from "node:fs";
import { nearestName } from "../../core/nearest-name.ts";
import { parseDuration, parseInstant } from "../../core/time.ts";
import { realSystem } from "../../engine/runtime/real-system.ts";
import { createKey, type KeyOptions } from "../../server/access/auth.ts";
import { readKeyFile } from "../../server/access/key-file.ts";
import { CommandFailed } from "../exit.ts";
import { confirm } from "../output/confirm.ts";
import { createOutput, type Output } from "../output/output.ts";
import { dim, paint } from "../output/paint.ts";
import { type Column, tableText } from "../output/table.ts";
import { relativeTime } from "../output/times.ts";
import { checkKeyEnd } from "./key-end.ts";
import { changeKeyFile } from "./key-files.ts";

interface FileOptions {
  readonly file?: string;
  readonly json?: boolean;
}

const DEFAULT_FILE = "keys.json";

function fileOf({ file }: FileOptions): string {
  if (file !== undefined) return file;
  if (existsSync(DEFAULT_FILE)) return DEFAULT_FILE;
  throw new CommandFailed(
    "usage",
    `which key file? Pass --file <file> or set CURFEW_KEYS; there is no ${DEFAULT_FILE} in this folder. Make the first key with: curfew keys new --name <name> --role admin --file ${DEFAULT_FILE}`,
  );
}

export type ListKeysOptions = FileOptions;

const ID_LENGTH = 12;

/** How a key is named: by the first digits of its hash, from which nobody can compute the key. */
const idOf = ({ hash }: KeyOptions) => hash.slice("sha256:".length, "sha256:".length + ID_LENGTH);

function endOf({ notAfter }: KeyOptions): number | null {
  return notAfter === undefined ? null : parseInstant(notAfter, "notAfter");
}

const isExpired = (key: KeyOptions, now: number) => (endOf(key) ?? Number.POSITIVE_INFINITY) <= now;

const instantText = (at: number | null) => (at === null ? null : new Date(at).toISOString());

const outputOf = ({ json }: FileOptions): Output => createOutput(json === true);

const columns = (now: number): Column<KeyOptions>[] => [
  { title: "ID", show: idOf },
  { title: "NAME", show: ({ name }) => name, shrinkTo: 12 },
  { title: "ROLE", show: ({ role }) => role },
  { title: "TENANT", show: tenantText, shrinkTo: 8, drop: 2 },
  { title: "VALID", show: (key) => validText(key, now) },
  { title: "RATE", show: ({ rate }) => (rate === undefined ? "-" : `${rate}/s`), align: "right", drop: 1 },
];

function tenantText({ tenant }: KeyOptions): string {
  if (tenant === undefined) return "-";
  return typeof tenant === "string" ? tenant : [...tenant].sort().join(", ");
}

function validText(key: KeyOptions, now: number): string {
  const end = endOf(key);
  if (end === null) return paint("green", "no end");
  const when = relativeTime(end, now);
  return end <= now ? paint("red", `expired ${when}`) : paint("yellow", `ends ${when}`);
}

export async function listKeys(options: ListKeysOptions): Promise<void> {
  const keys = await readKeyFile(fileOf(options));
  const now = realSystem.wall();
  const fields = keys.map((key) => ({
    id: idOf(key),
    name: key.name,
    role: key.role,
    not_after: instantText(endOf(key)),
    rate: key.rate ?? null,
    tenant: key.tenant ?? null,
    is_expired: isExpired(key, now),
  }));
  outputOf(options).answer({ items: fields }, () =>
    keys.length === 0 ? "No keys." : tableText(columns(now), keys),
  );
}

/** The keys that a word means: those of a name, or the one with this id. */
function meant(keys: readonly KeyOptions[], word: string, file: string): readonly KeyOptions[] {
  const named = keys.filter(({ name }) => name === word);
  if (named.length > 0) return named;
  const isId = /^[0-9a-f]{4,64}$/.test(word);
  const byId = isId ? keys.filter(({ hash }) => hash.startsWith(`sha256:${word}`)) : [];
  if (byId.length === 1) return byId;
  if (byId.length > 1)
    throw new CommandFailed(
      "failed",
      `${byId.length} keys have an id that begins with ${word}; write more of it`,
    );
  const near = nearestName(
    word,
    keys.map(({ name }) => name),
  );
  const hint = near === undefined ? "" : `; did you mean ${JSON.stringify(near)}?`;
  throw new CommandFailed("failed", `${file} has no key ${JSON.stringify(word)}${hint}`);
}

export interface RotateKeyOptions extends FileOptions {
  readonly overlap: string;
  readonly notAfter?: string;
}

/** A key before and after its rotation. */
interface Replaced {
  readonly before: KeyOptions;
  readonly after: KeyOptions;
}

export async function rotateKey(word: string, options: RotateKeyOptions): Promise<void> {
  const { notAfter } = options;
  const file = fileOf(options);
  const overlap = parseDuration(options.overlap, "--overlap", { zero: true });
  const now = realSystem.wall();
  checkKeyEnd(notAfter);
  const { key, hash } = createKey();
  let entry: KeyOptions | undefined;
  let replaced: readonly Replaced[] = [];
  await changeKeyFile(file, (keys) => {
    const old = meant(keys, word, file).filter((one) => !isExpired(one, now));
    const [first] = old;
    if (!first)
      throw new CommandFailed(
        "failed",
        `every key of ${word} has expired; make a new one with curfew keys new`,
      );
    if (old.some((one) => tenantText(one) !== tenantText(first)))
      throw new CommandFailed(
        "failed",
        `${word} has keys of several tenants; name one by its id, see curfew keys ls`,
      );
    if (old.some(({ role }) => role !== first.role))
      throw new CommandFailed(
        "failed",
        `${word} has keys of several roles; name one by its id, see curfew keys ls`,
      );
    entry = {
      name: first.name,
      role: first.role,
      hash,
      ...(notAfter !== undefined && { notAfter }),
      ...(first.rate !== undefined && { rate: first.rate }),
      ...(first.tenant !== undefined && { tenant: first.tenant }),
    };
    replaced = old.map((before) => {
      const end = Math.min(now + overlap, endOf(before) ?? Number.POSITIVE_INFINITY);
      return { before, after: { ...before, notAfter: new Date(end).toISOString() } };
    });
    const ending = new Map(replaced.map(({ after }) => [after.hash, after]));
    return [...keys.map((one) => ending.get(one.hash) ?? one), entry];
  });
  const made = entry as unknown as KeyOptions;
  const answer = {
    key,
    id: idOf(made),
    name: made.name,
    role: made.role,
    not_after: instantText(endOf(made)),
    replaced: replaced.map(({ after }) => ({ id: idOf(after), not_after: instantText(endOf(after)) })),
  };
  outputOf(options).answer(answer, () => rotatedText(key, made, replaced, file, now));
}

function rotatedText(
  key: string,
  made: KeyOptions,
  replaced: readonly Replaced[],
  file: string,
  now: number,
): string {
  const old = replaced.map(({ after }) => {
    const end = endOf(after) as number;
    const left = relativeTime(end, now).replace(/^in /, "");
    const until =
      end <= now ? "is refused as soon as servers have read the file" : `is valid for another ${left}`;
    return `The old key ${idOf(after)} ${until}.`;
  });
  const hadEnd = made.notAfter === undefined && replaced.some(({ before }) => before.notAfter !== undefined);
  return [
    `${dim("key  ")} ${paint("green", key)}`,
    `${dim("id   ")} ${idOf(made)}`,
    "",
    `Hand the key to ${made.name} now: it is not stored and cannot be shown again.`,
    ...old,
    ...(hadEnd
      ? [paint("yellow", "The new key has no end, and the old one had one: --not-after sets it.")]
      : []),
    `${file} was changed. A running server reads the file again on SIGHUP.`,
  ].join("\n");
}

export interface RemoveKeysOptions extends FileOptions {
  readonly expired?: boolean;
  readonly yes?: boolean;
}

export async function removeKeys(words: readonly string[], options: RemoveKeysOptions): Promise<void> {
  if (words.length === 0 && !options.expired)
    throw new CommandFailed("usage", "which keys? Name them, or pass --expired");
  const file = fileOf(options);
  const now = realSystem.wall();
  const pick = (keys: readonly KeyOptions[]) => {
    const named = words.flatMap((word) => meant(keys, word, file));
    const over = options.expired ? keys.filter((key) => isExpired(key, now)) : [];
    return new Set([...named, ...over].map(({ hash }) => hash));
  };
  const keys = await readKeyFile(file);
  const hashes = pick(keys);
  const removed = keys.filter(({ hash }) => hashes.has(hash));
  const output = outputOf(options);
  if (removed.length > 0) {
    if (!options.yes) output.note(tableText(columns(now), removed));
    const many = removed.length === 1 ? "this key" : `these ${removed.length} keys`;
    await confirm(`Remove ${many} from ${file}? Callers with them are refused.`, { yes: options.yes });
    await changeKeyFile(file, (current) => current.filter(({ hash }) => !hashes.has(hash)));
  }
  const fields = removed.map((key) => ({ id: idOf(key), name: key.name, role: key.role }));
  output.answer({ removed: fields }, () =>
    removed.length === 0
      ? "No keys to remove."
      : `${removed.length} ${removed.length === 1 ? "key" : "keys"} removed. A running server reads the file again on SIGHUP.`,
  );
}
