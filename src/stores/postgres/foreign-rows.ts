import type { ClientLike } from "./session.ts";

/* Statements through libraries that read rows in their own way. */

/** Runs a statement and gives its rows as the library reads them. */
type RunStatement = (text: string, values: (string | null)[]) => PromiseLike<unknown>;

/**
 * Columns of type bigint. Libraries give them as texts, numbers or bigints. All others are texts, or small integers
 * that each library gives as numbers.
 */
const BIGINTS: ReadonlySet<string> = new Set([
  "enter_cluster",
  "fence",
  "version",
  "wake_at",
  "lease_until",
  "due_at",
  "created_at",
]);

/** A client whose library gives rows as objects: an array of them, or an object that has it as `rows`. */
export function objectClient(run: RunStatement): ClientLike {
  return {
    async query({ text, values }) {
      try {
        const answer = await run(text, asTexts(values));
        return { rows: rowsOf(answer).map(byPosition) };
      } catch (error) {
        throw serverError(error);
      }
    },
  };
}

/** Each parameter has a cast, so that the server reads texts, whatever a library would make of other values. */
export function asTexts(values: readonly unknown[] | undefined): (string | null)[] {
  return (values ?? []).map((value) => (value === null || value === undefined ? null : String(value)));
}

function rowsOf(answer: unknown): readonly object[] {
  if (Array.isArray(answer)) return answer as readonly object[];
  const { rows } = answer as { readonly rows?: unknown };
  return Array.isArray(rows) ? (rows as readonly object[]) : [];
}

function byPosition(row: object): unknown[] {
  return Object.entries(row).map(([name, value]) => {
    if (typeof value === "bigint") return Number(value);
    return typeof value === "string" && BIGINTS.has(name) ? Number(value) : value;
  });
}

/** Libraries wrap the error of the server. Its code tells what happened. */
function serverError(error: unknown): unknown {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if ("code" in at && typeof at.code === "string" && /^[0-9A-Z]{5}$/.test(at.code)) return at;
  }
  return error;
}
