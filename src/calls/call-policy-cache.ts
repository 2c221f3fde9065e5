import type { CallOptions, CallPolicy } from "../core/call/call-policy.ts";

/** Programs may compute limits, so the number of kept policies is bounded. */
const MOST_KEPT = 100;

interface Kept {
  readonly total: unknown;
  readonly grace: unknown;
  readonly mode: unknown;
  readonly attempts: unknown;
  readonly retryFit: unknown;
  readonly policy: CallPolicy;
}

/**
 * The policies of limits that are written as text. Parsing costs more than the call, and most programs write a few
 * texts.
 */
export class CallPolicyCache {
  /** By the text of their `attempt`. */
  readonly #kept = new Map<unknown, Kept[]>();
  #count = 0;

  /** The kept policy of these options, or the one that `parse` makes of them. */
  policyOf<Options extends CallOptions>(
    options: Options,
    parse: (options: Options) => CallPolicy,
  ): CallPolicy {
    if (!isText(options)) return parse(options);
    const { attempt, total, grace, mode, retry } = options;
    const attempts = retry?.attempts;
    const retryFit = retry?.retryFit;
    const same = this.#kept.get(attempt) ?? [];
    for (const kept of same)
      if (
        kept.total === total &&
        kept.grace === grace &&
        kept.mode === mode &&
        kept.attempts === attempts &&
        kept.retryFit === retryFit
      )
        return kept.policy;
    const policy = parse(options);
    if (this.#count >= MOST_KEPT) return policy;
    this.#count += 1;
    same.push({ total, grace, mode, attempts, retryFit, policy });
    this.#kept.set(attempt, same);
    return policy;
  }
}

/** Whether the limits are texts, and retries at most a number and a text. */
function isText(options: CallOptions): boolean {
  if (typeof options !== "object" || options === null) return false;
  for (const key in options) {
    switch (key) {
      case "name":
      case "signal":
      case "detach":
        break;
      case "attempt":
      case "total":
      case "grace":
      case "mode": {
        const value: unknown = options[key];
        if (value !== undefined && typeof value !== "string") return false;
        break;
      }
      case "retry":
        if (!isPlainRetry(options.retry)) return false;
        break;
      default:
        return false;
    }
  }
  return true;
}

function isPlainRetry(retry: CallOptions["retry"]): boolean {
  if (retry === undefined) return true;
  if (typeof retry !== "object" || retry === null) return false;
  for (const key in retry) if (key !== "attempts" && key !== "retryFit") return false;
  const { attempts, retryFit } = retry as { attempts?: unknown; retryFit?: unknown };
  return (
    (attempts === undefined || typeof attempts === "number") &&
    (retryFit === undefined || typeof retryFit === "string")
  );
}
