import type { EnqueueOptions } from "../../src/core/job/enqueue/envelope.ts";
import type { PolicyOptions } from "../../src/core/job/policy/policy.ts";
import type { SimJobType } from "./plan.ts";

/**
 * What a job's limits must be, worked out from what the simulator itself wrote into definitions and calls. It is a
 * second, simpler reading of SEMANTICS 2 that shares no code with the one it checks.
 */
export interface Expected {
  /** Milliseconds; null for none. `undefined` where a queue's settings may have decided: then it is not checked. */
  readonly attempt: number | null | undefined;
  /** The same, or the ceiling of an adaptive limit, whose floor `attempt` is. */
  readonly longestAttempt: number | null | undefined;
  readonly grace: number | null | undefined;
  readonly wait: number | null;
  readonly total: number | null;
  readonly delay: number | null;
  /** True time of the call: its durations must not end before they have passed since then. */
  readonly askedAt: number;
  readonly mode: "fail" | "discard";
  readonly attempts: number;
  readonly except: readonly string[];
  readonly onStall: "retry" | "discard";
  readonly onExhausted: "discard" | "dead-letter";
  /** States in which retention deletes the job at once. */
  readonly dropped: ReadonlySet<string>;
}

export function expectedOf(
  enqueue: Pick<EnqueueOptions, keyof PolicyOptions | "delay">,
  { said: definition }: SimJobType,
  queues: { readonly areConfigured: boolean },
  askedAt: number,
): Expected {
  const layers = [enqueue, definition];
  const first = <Value>(read: (layer: PolicyOptions) => Value | undefined): Value | undefined =>
    layers.map(read).find((value) => value !== undefined);
  const limit = (value: unknown): number | null | undefined =>
    value === undefined ? undefined : value === "none" || value === "unbounded" ? null : millis(value);
  const named = first((layer) => layer.timeouts?.attempt);
  const rule = typeof named === "object" && "adaptive" in named ? named.adaptive : undefined;
  const attempt = limit(rule ? rule.floor : named);
  const longest = limit(rule ? rule.ceiling : named);
  const grace = limit(first((layer) => layer.timeouts?.grace));
  // Asked for anew each time: a queue may be configured between the enqueue and the first start.
  const inherited = (value: number | null | undefined, builtIn: number) =>
    value !== undefined ? value : queues.areConfigured ? undefined : builtIn;
  return {
    get attempt() {
      return inherited(attempt, 1_800_000);
    },
    get longestAttempt() {
      return inherited(longest, 1_800_000);
    },
    get grace() {
      return inherited(grace, 30_000);
    },
    wait: limit(first((layer) => layer.timeouts?.wait)) ?? null,
    total: limit(first((layer) => layer.timeouts?.total)) ?? null,
    delay: limit(enqueue.delay) ?? null,
    askedAt,
    mode: first((layer) => layer.timeouts?.mode) ?? "fail",
    attempts: first((layer) => layer.retry?.attempts) ?? 3,
    except: first((layer) => layer.retry?.except) ?? [],
    onStall: first((layer) => layer.retry?.onStall) ?? "retry",
    onExhausted: first((layer) => layer.retry?.onExhausted) ?? "discard",
    dropped: new Set(["completed", "discarded", "cancelled"].filter((state) => isDropped(layers, state))),
  };
}

function isDropped(layers: readonly PolicyOptions[], state: string): boolean {
  for (const { retention } of layers) {
    const kept = typeof retention === "object" ? (retention as Record<string, unknown>)[state] : retention;
    if (kept !== undefined) return kept === "0s";
  }
  return false;
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

function millis(duration: unknown): number {
  const [, amount, unit] = /^(\d+)(ms|s|m|h|d)$/.exec(String(duration)) ?? [];
  return Number(amount) * (UNITS[unit as string] as number);
}
