import { CurfewError } from "../../errors.ts";
import type { Json } from "../../schema.ts";
import type { JobId, JobRow } from "../job.ts";

/** The documents of a job that are encrypted (SEMANTICS 14). */
export type SealedField = "payload" | "result" | "checkpoint" | "progress";

/** Encrypts documents and opens them. Injected, because core imports nothing from Node. */
export interface Sealing {
  /** JSON text in, JSON text out. The job and the field are bound to it: elsewhere it does not open. */
  seal(text: string, job: JobId, field: SealedField): string;
  /** Throws a `KeyMissingError` if this process does not have the key. */
  open(text: string, field: SealedField): string;
  /** A keyed hash, for unique keys that are computed from a payload. */
  hash(text: string): string;
}

/** What a sealed document looks like. The names are short: each job has one or more. */
export interface SealedDocument {
  readonly "$curfew.sealed": string;
  /** The job that it belongs to. Part of the authenticated data. */
  readonly job: JobId;
  /** Base64 of nonce, tag and ciphertext. */
  readonly data: string;
}

const MARK = '{"$curfew.sealed":"';

export function isSealed(text: string | null): text is string {
  return text?.startsWith(MARK) ?? false;
}

/** The name of the key that a document is encrypted with; undefined if it is not encrypted. */
export function sealedWith(text: string): string | undefined {
  return isSealed(text) ? /^[^"]*"\$curfew\.sealed":"([^"\\]*)"/.exec(text)?.[1] : undefined;
}

/** This process has no key of that name. The job is left for one that does. */
export class KeyMissingError extends CurfewError {
  override readonly name = "KeyMissingError";
  readonly key: string;

  constructor(key: string, field: string) {
    super(
      "key_missing",
      `${field}: it is encrypted with the key ${JSON.stringify(key)}, which this process does not have; add it to encryption.keys`,
      { field },
    );
    this.key = key;
  }
}

/** Opens a document of a job if it is sealed; null for a result of any job. Throws if it cannot be opened. */
export function opened(
  sealing: Sealing | undefined,
  text: string,
  row: Pick<JobRow, "id"> | null,
  field: SealedField,
): string {
  if (!isSealed(text)) return text;
  const { "$curfew.sealed": key, job } = JSON.parse(text) as SealedDocument;
  if (!sealing) throw new KeyMissingError(key, field);
  if (row !== null && job !== row.id)
    throw new CurfewError(
      "unsealed",
      `${field}: it was encrypted for job ${job}, and this is job ${row.id}; somebody moved it`,
      { field },
    );
  return sealing.open(text, field);
}

/** The row with its documents opened, for views. What cannot be opened stays as it is stored. */
export function openedRow<Row extends JobRow>(sealing: Sealing | undefined, row: Row): Row {
  if (!sealing) return row;
  const open = (text: string, field: SealedField) => {
    try {
      return opened(sealing, text, row, field);
    } catch {
      return text;
    }
  };
  const note =
    row.progress === null ? undefined : (JSON.parse(row.progress) as { readonly note?: Json }).note;
  const noteText = note === undefined ? null : JSON.stringify(note);
  return {
    ...row,
    payload: open(row.payload, "payload"),
    result: row.result === null ? null : open(row.result, "result"),
    checkpoint: row.checkpoint === null ? null : open(row.checkpoint, "checkpoint"),
    ...(isSealed(noteText) && {
      progress: JSON.stringify({
        ...(JSON.parse(row.progress as string) as object),
        note: JSON.parse(open(noteText, "progress")),
      }),
    }),
  };
}

/** Results of many jobs, with each that is sealed opened: the result of a workflow. */
export function openedDeep(sealing: Sealing | undefined, value: Json): Json {
  if (!sealing || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => openedDeep(sealing, one));
  const text = JSON.stringify(value);
  if (isSealed(text)) return JSON.parse(sealing.open(text, "result")) as Json;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, openedDeep(sealing, one)]));
}
