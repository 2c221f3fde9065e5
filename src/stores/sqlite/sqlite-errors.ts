import { CurfewError } from "../../core/errors.ts";

/** What SQLite's result codes mean to the user. Extended codes begin with the plain one. */
const MEANINGS: readonly (readonly [code: string, says: string])[] = [
  ["SQLITE_NOTADB", "is not a SQLite database: name another file, or move this one away"],
  [
    "SQLITE_CORRUPT",
    "is damaged: restore it from a backup, or save what is left with `sqlite3 FILE .recover`",
  ],
  ["SQLITE_READONLY", "cannot be written: give this user the right to write the file and its folder"],
  ["SQLITE_PERM", "cannot be written: give this user the right to write the file and its folder"],
  ["SQLITE_CANTOPEN", "cannot be opened: check that this user may read and write the file and its folder"],
  ["SQLITE_FULL", "cannot grow: the disk is full"],
  ["SQLITE_IOERR", "cannot be read or written: the disk or the file system failed"],
];

/** The names of the codes that the store tells apart. `node:sqlite` gives numbers. */
const NAMES: Readonly<Record<number, string>> = {
  3: "SQLITE_PERM",
  5: "SQLITE_BUSY",
  8: "SQLITE_READONLY",
  10: "SQLITE_IOERR",
  11: "SQLITE_CORRUPT",
  13: "SQLITE_FULL",
  14: "SQLITE_CANTOPEN",
  19: "SQLITE_CONSTRAINT",
  26: "SQLITE_NOTADB",
  1555: "SQLITE_CONSTRAINT_PRIMARYKEY",
  2067: "SQLITE_CONSTRAINT_UNIQUE",
};

function codeOf(error: unknown): string {
  const { code, errcode } = (error ?? {}) as { code?: unknown; errcode?: unknown };
  // The low byte of an extended code is the plain one.
  if (typeof errcode === "number") return NAMES[errcode] ?? NAMES[errcode & 0xff] ?? `SQLITE_${errcode}`;
  return typeof code === "string" ? code : "";
}

/** Another connection is writing. The same work can be tried again. */
export function isBusy(error: unknown): boolean {
  return codeOf(error).startsWith("SQLITE_BUSY");
}

/** The file is no database, or a part of it is not what SQLite wrote. */
export function isDamage(error: unknown): boolean {
  return [error, (error as { cause?: unknown }).cause].some((one) =>
    /^SQLITE_(NOTADB|CORRUPT)/.test(codeOf(one)),
  );
}

/** Another row has the same unique value. */
export function isTaken(error: unknown): boolean {
  return ["SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_UNIQUE"].includes(codeOf(error));
}

/** A failure of SQLite in a message that names the file and the fix. Any other error is returned unchanged. */
export function explained(error: unknown, path: string): unknown {
  const code = codeOf(error);
  if (!code.startsWith("SQLITE_")) return error;
  const says = MEANINGS.find(([start]) => code.startsWith(start))?.[1];
  return failed(path, says ?? `failed: ${(error as Error).message} (${code})`, error);
}

export function failed(path: string, says: string, cause?: unknown): CurfewError {
  return new CurfewError("store_failed", `The SQLite file ${path} ${says}`, { cause });
}
