import { hash } from "node:crypto";

/** SHA-256 of a text in hexadecimal, for the hashes of unique keys. */
export function sha256(text: string): string {
  return hash("sha256", text, "hex");
}
