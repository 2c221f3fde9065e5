import { isObject } from "../core/is-object.ts";

/** Lines of an export on the wire and in files: the fields of the library in snake_case, as everywhere in JSON. */

type Fields = Readonly<Record<string, unknown>>;

const snakeCase = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const camelCase = (name: string) =>
  name.replace(/([a-z])_([a-z])/g, (_all, before: string, after: string) => before + after.toUpperCase());

/** The documents `options`, `policy` and `errors` stay as stores keep them. */
export function writeExportLine(line: object): Fields {
  return renamed(line, snakeCase);
}

/** A line as an import takes it. A line of version 1 was written in camelCase, and comes out as it went in. */
export function readExportLine(line: unknown): unknown {
  return isObject(line) ? renamed(line, camelCase) : line;
}

/** The message about a line names its field as the line does: `job.createdAt: …` is `job.created_at: …`. */
export function writeLineMessage(message: string): string {
  return message.replace(/^[\w.[\]]+(?=:)/, snakeCase);
}

function renamed(line: object, name: (key: string) => string): Fields {
  return Object.fromEntries(
    Object.entries(line).map(([key, value]) => [
      name(key),
      key === "holders" && Array.isArray(value)
        ? value.map((holder: unknown) => (isObject(holder) ? renamed(holder, name) : holder))
        : value,
    ]),
  );
}
