import { createReadStream } from "node:fs";
import { isObject } from "../core/is-object.ts";
import { CommandFailed } from "./exit.ts";
import type { Fields } from "./target/target.ts";

/** The version of the file that `export` writes. Version 1 differs in the names of its fields alone. */
const FILE_VERSION = 3;
const READ_VERSIONS: readonly unknown[] = [1, 2, FILE_VERSION];

/** The first line of an export. */
export function headLine(exportedAt: string, filter: Fields): Fields {
  return { curfew: "export", version: FILE_VERSION, exported_at: exportedAt, filter };
}

/** The last line: a file without it was cut off. */
export function endLine(jobs: number, uniqueKeys: number, leftOut: Fields): Fields {
  return { curfew: "end", jobs, unique_keys: uniqueKeys, left_out: leftOut };
}

/** Writes a line to standard output and waits while the reader is slower: nothing piles up in memory. */
export async function writeLine(line: Fields): Promise<void> {
  if (process.stdout.write(`${JSON.stringify(line)}\n`)) return;
  await new Promise((resolve) => process.stdout.once("drain", resolve));
}

/** A document may have 1 MB, and doubles in the worst case when it is written into a line. */
const LONGEST_LINE = 32 * 1024 * 1024;

export interface NumberedText {
  readonly number: number;
  readonly text: string;
}

/** The lines of a file, or of standard input for `-`. Empty lines are passed over. */
export async function* readLines(file: string): AsyncGenerator<NumberedText, void, undefined> {
  const stream = file === "-" ? process.stdin : createReadStream(file);
  stream.setEncoding("utf8");
  let rest = "";
  let number = 0;
  try {
    for await (const chunk of stream as AsyncIterable<string>) {
      const parts = (rest + chunk).split("\n");
      rest = parts.pop() as string;
      if (rest.length > LONGEST_LINE)
        throw new CommandFailed(
          "usage",
          `line ${number + 1}: longer than ${LONGEST_LINE} characters; this is no export`,
        );
      for (const text of parts) {
        number += 1;
        if (text.trim() !== "") yield { number, text };
      }
    }
  } catch (error) {
    if (error instanceof CommandFailed || !(error instanceof Error)) throw error;
    throw new CommandFailed("usage", `${file}: cannot be read: ${error.message}`, { cause: error });
  }
  if (rest.trim() !== "") yield { number: number + 1, text: rest };
}

/** The fields of a line, or undefined if it is not a JSON object. */
export function fieldsIn(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Refuses a file that does not begin with the first line of an export, or that is newer than this curfew. */
export function checkHead({ number, text }: NumberedText): void {
  const { curfew, version } = fieldsIn(text) ?? {};
  if (curfew !== "export")
    throw new CommandFailed(
      "usage",
      `line ${number}: this is no export of curfew; make one with curfew export`,
    );
  if (!READ_VERSIONS.includes(version))
    throw new CommandFailed(
      "usage",
      `line ${number}: version ${JSON.stringify(version)} is not known here; this curfew reads up to version ${FILE_VERSION}: use the curfew that wrote it`,
    );
}
