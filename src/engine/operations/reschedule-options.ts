import { refuse, refuseUnknownKeys } from "../../core/errors.ts";
import {
  type Duration,
  type Instant,
  type InstantInput,
  parseDuration,
  parseInstant,
} from "../../core/time.ts";

/** When a waiting job is due instead: after a delay, or at an instant. */
export type RescheduleOptions = { readonly delay: Duration } | { readonly at: InstantInput };

/** The instant that is meant. A delay counts from `anchor`. */
export function parseReschedule(options: RescheduleOptions, anchor: Instant): Instant {
  refuseUnknownKeys(options, "reschedule", ["delay", "at"]);
  const { delay, at } = options as { readonly delay?: Duration; readonly at?: InstantInput };
  if ((delay === undefined) === (at === undefined))
    throw refuse("invalid_option", "reschedule", options, 'write { delay: "5m" } or { at: an instant }');
  if (delay !== undefined) return anchor + parseDuration(delay, "reschedule.delay", { zero: true });
  return parseInstant(at, "reschedule.at");
}
