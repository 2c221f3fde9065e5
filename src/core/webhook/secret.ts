import { refuse } from "../errors.ts";
import { type Duration, type Instant, parseDuration } from "../time.ts";

/** The secrets of a subscription. They are in a record of their own, so that no list of subscriptions has them. */
export interface WebhookSecrets {
  readonly secret: string;
  /** The one before a rotation. Calls are signed with both until then. */
  readonly old?: { readonly secret: string; readonly until: Instant };
}

const SHORTEST = 16;
const LONGEST = 256;
const LONGEST_OVERLAP = 30 * 86_400_000;
const OVERLAP = 86_400_000;

/** Never shows the value. */
export function checkSecret(secret: unknown, field: string): string {
  const isValid =
    typeof secret === "string" &&
    secret.length >= SHORTEST &&
    secret.length <= LONGEST &&
    /^[\x21-\x7e]+$/.test(secret);
  if (isValid) return secret;
  const fix = `use ${SHORTEST} to ${LONGEST} visible ASCII characters, or leave it out to get a new one`;
  throw refuse("invalid_option", field, "(not shown)", fix);
}

/** `whsec_` and 256 random bits. */
export function newSecret(fill: (bytes: Uint8Array) => void): string {
  const bytes = new Uint8Array(32);
  fill(bytes);
  return `whsec_${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** The secrets after a rotation. With an overlap of "0s" the old one is gone at once. */
export function rotated(
  { secret: before }: WebhookSecrets,
  secret: string,
  overlap: Duration | undefined,
  now: Instant,
): WebhookSecrets {
  const length = overlap === undefined ? OVERLAP : parseDuration(overlap, "overlap", { zero: true });
  if (length > LONGEST_OVERLAP) throw refuse("invalid_option", "overlap", overlap, "use at most 30 days");
  return length === 0 ? { secret } : { secret, old: { secret: before, until: now + length } };
}

/** The secrets to sign with now, the newest first. */
export function signingSecrets({ secret, old }: WebhookSecrets, now: Instant): readonly string[] {
  return old && now < old.until ? [secret, old.secret] : [secret];
}
