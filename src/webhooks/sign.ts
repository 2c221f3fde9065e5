import { createHmac } from "node:crypto";

/**
 * The header `X-OJS-Signature`: HMAC-SHA256 of `timestamp.body` with each secret, separated by commas while a secret
 * is being rotated.
 */
export function signatureOf(secrets: readonly string[], timestamp: string, body: string): string {
  return secrets
    .map((secret) => `sha256=${createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex")}`)
    .join(",");
}
