import { CurfewError, refuse } from "../errors.ts";
import { type Duration, type Instant, parseDuration } from "../time.ts";

interface OldSecret {
  readonly secret: string;
  /** Calls are signed with it until then. */
  readonly until: Instant;
}

/** The secrets of a subscription. They are in a record of their own, so that no list of subscriptions has them. */
export interface WebhookSecrets {
  readonly secret: string;
  /** The one before the last rotation. */
  readonly old?: OldSecret;
  /** Those of rotations before it, the newest first. */
  readonly older?: readonly OldSecret[];
}

const SHORTEST = 16;
const LONGEST = 256;
const LONGEST_OVERLAP = 30 * 86_400_000;
const OVERLAP = 86_400_000;
/** Each is a signature in the header of each call. */
const MOST_OLD = 3;

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

/**
 * The secrets after a rotation. Those whose overlap is not over stay: a rotation may be repeated because its reply was
 * lost, and receivers still have the first one. With an overlap of "0s" all old ones are gone at once.
 */
export function rotated(
  before: WebhookSecrets,
  secret: string,
  overlap: Duration | undefined,
  now: Instant,
): WebhookSecrets {
  const length = overlap === undefined ? OVERLAP : parseDuration(overlap, "overlap", { zero: true });
  if (length > LONGEST_OVERLAP) throw refuse("invalid_option", "overlap", overlap, "use at most 30 days");
  if (length === 0) return { secret };
  const older = oldOf(before, now);
  if (older.length >= MOST_OLD) {
    const fix = 'wait until one of them is over, or end all of them with an overlap of "0s"';
    throw new CurfewError("invalid_state", `rotate: ${MOST_OLD} earlier secrets are still in use; ${fix}`);
  }
  const old = { secret: before.secret, until: now + length };
  return { secret, old, ...(older.length > 0 && { older }) };
}

function oldOf({ old, older = [] }: WebhookSecrets, now: Instant): OldSecret[] {
  return [...(old ? [old] : []), ...older].filter(({ until }) => now < until);
}

/** The secrets to sign with now, the newest first. */
export function signingSecrets(secrets: WebhookSecrets, now: Instant): readonly string[] {
  return [secrets.secret, ...oldOf(secrets, now).map(({ secret }) => secret)];
}
