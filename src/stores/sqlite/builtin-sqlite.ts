/** The part of `node:sqlite` that is needed to tell whether it has everything. */
interface BuiltinSqlite {
  readonly DatabaseSync: unknown;
  readonly StatementSync?: { readonly prototype: object };
  readonly backup?: unknown;
}

const WARNING = /^SQLite is an experimental feature/;

/**
 * The SQLite of Node itself. Undefined in Node 22.14 and 22.15, which lack backups and rows as arrays, and where it is
 * turned off or missing.
 */
export function builtinSqlite(): typeof import("node:sqlite") | undefined {
  const sqlite = withoutWarning(() => process.getBuiltinModule("node:sqlite")) as BuiltinSqlite | undefined;
  const isWhole =
    typeof sqlite?.backup === "function" && "setReturnArrays" in (sqlite.StatementSync?.prototype ?? {});
  return isWhole ? (sqlite as unknown as typeof import("node:sqlite")) : undefined;
}

/** Node 22 prints a warning when the module is loaded. What the store uses of it has not changed since. */
function withoutWarning<Value>(load: () => Value): Value {
  const { emitWarning } = process;
  process.emitWarning = ((warning: string | Error, ...rest: []) => {
    if (!WARNING.test(String(warning))) Reflect.apply(emitWarning, process, [warning, ...rest]);
  }) as typeof emitWarning;
  try {
    return load();
  } finally {
    process.emitWarning = emitWarning;
  }
}
