import { hash } from "node:crypto";

/** SHA-256 of a text, in hexadecimal: what core uses as the hash of unique keys. */
export function sha256(text: string): string {
  return hash("sha256", text, "hex");
}
