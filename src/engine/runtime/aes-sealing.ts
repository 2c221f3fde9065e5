import { createCipheriv, createDecipheriv, createHmac } from "node:crypto";
import { CurfewError, refuse, refuseUnknownKeys } from "../../core/errors.ts";
import {
  isSealed,
  KeyMissingError,
  type SealedDocument,
  type SealedField,
  type Sealing,
} from "../../core/job/documents/sealed.ts";
import type { JobId } from "../../core/job/job.ts";
import type { System } from "../../ports/system.ts";

/** Encrypts payloads, results, checkpoints and notes of progress with AES-256-GCM before they leave this process. */
export interface EncryptionOptions {
  /** 32 bytes each, as bytes or in base64, by a name of your choice that is stored with each document. */
  readonly keys: { readonly [name: string]: Uint8Array | string };
  /** The key for new documents. The others only open older ones. */
  readonly current: string;
  /** The key for hashes of unique keys. Keep it when you rotate. Default: the first of `keys`. */
  readonly unique?: string;
}

const ALGORITHM = "aes-256-gcm";
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const NAME = /^[A-Za-z0-9_.-]{1,64}$/;

export function openSealing(
  options: EncryptionOptions,
  { fill }: Pick<System, "fill">,
  documentLimit: number,
): Sealing {
  refuseUnknownKeys(options, "encryption", ["keys", "current", "unique"]);
  const keys = readKeys(options.keys);
  const named = (name: unknown, field: string): [string, Uint8Array] => {
    const key = typeof name === "string" ? keys.get(name) : undefined;
    if (key) return [name as string, key];
    throw refuse(
      "invalid_option",
      `encryption.${field}`,
      shownName(name),
      `name one of ${[...keys.keys()].join(", ")}`,
    );
  };
  const [current, currentKey] = named(options.current, "current");
  const [, uniqueKey] = named(options.unique ?? [...keys.keys()][0], "unique");
  return {
    seal: (text, job, field) => {
      const sealed = seal(text, { name: current, key: currentKey, fill }, job, field);
      if (sealed.length <= documentLimit) return sealed;
      throw new CurfewError(
        "too_large",
        `${field}: ${sealed.length} characters when it is encrypted, and documentLimit is ${documentLimit}; make it smaller`,
        { field },
      );
    },
    open: (text, field) => open(text, keys, field),
    hash: (text) => createHmac("sha256", uniqueKey).update(text).digest("hex"),
  };
}

/** A key must never be part of an error or a log line, so only its name and its length are named. */
function readKeys(given: EncryptionOptions["keys"]): Map<string, Uint8Array> {
  const names = typeof given === "object" && given !== null ? Object.keys(given) : [];
  if (names.length === 0)
    throw refuse("invalid_option", "encryption.keys", typeof given, "name at least one key of 32 bytes");
  return new Map(
    names.map((name) => {
      if (!NAME.test(name))
        throw refuse(
          "invalid_name",
          "encryption.keys",
          shownName(name),
          'use letters, digits, "_", "." and "-", at most 64',
        );
      const value: unknown = given[name];
      const bytes =
        value instanceof Uint8Array
          ? value
          : typeof value === "string"
            ? Buffer.from(value, "base64")
            : undefined;
      if (bytes?.length === KEY_BYTES) return [name, Uint8Array.from(bytes)] as const;
      const fix = "use 32 bytes, as a Uint8Array or in base64: openssl rand -base64 32";
      throw refuse("invalid_option", `encryption.keys.${name}`, `${bytes?.length ?? "no"} bytes`, fix);
    }),
  );
}

/** Somebody who mixes up a key and its name must not find the key in a log. In base64 it ends in "=". */
function shownName(name: unknown): string {
  return typeof name === "string" && NAME.test(name) ? name : "a text that is no name";
}

/** What must be the same when it is opened: nobody can move a document to another job or field. */
function boundTo(name: string, job: JobId, field: SealedField): Buffer {
  return Buffer.from(JSON.stringify(["curfew", name, job, field]));
}

function seal(
  text: string,
  { name, key, fill }: { readonly name: string; readonly key: Uint8Array } & Pick<System, "fill">,
  job: JobId,
  field: SealedField,
): string {
  const nonce = new Uint8Array(NONCE_BYTES);
  fill(nonce);
  const cipher = createCipheriv(ALGORITHM, key, nonce);
  cipher.setAAD(boundTo(name, job, field));
  const body = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  const data = Buffer.concat([nonce, cipher.getAuthTag(), body]).toString("base64");
  return JSON.stringify({ "$curfew.sealed": name, job, data } satisfies SealedDocument);
}

function open(text: string, keys: ReadonlyMap<string, Uint8Array>, field: SealedField): string {
  if (!isSealed(text)) return text;
  const { "$curfew.sealed": name, job, data } = JSON.parse(text) as SealedDocument;
  const key = keys.get(name);
  if (!key) throw new KeyMissingError(name, field);
  try {
    const bytes = Buffer.from(data, "base64");
    const cipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE_BYTES), {
      authTagLength: TAG_BYTES,
    });
    cipher.setAAD(boundTo(name, job, field));
    cipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
    return Buffer.concat([cipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), cipher.final()]).toString(
      "utf8",
    );
  } catch (cause) {
    const message = `${field}: it does not open with the key ${JSON.stringify(name)}; it was changed, or the key is another one of the same name`;
    throw new CurfewError("unsealed", message, { field, cause });
  }
}
