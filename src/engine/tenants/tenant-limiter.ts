import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import type { TenantLimits } from "../../core/tenant/tenant-limits.ts";
import type { Instant } from "../../core/time.ts";
import type { Inspector } from "../../ports/store.ts";
import { TenantLimitError } from "./tenant-limit-error.ts";

/** How long a count of waiting jobs is used. Jobs that this process adds meanwhile are added to it. */
const COUNTED_FOR = 1_000;
const RETRY_WAITING = 1_000;

interface LimiterDeps {
  readonly tenant: string;
  readonly inspect: Pick<Inspector, "used">;
  readonly limits: () => TenantLimits;
  readonly now: () => Instant;
}

/** Enforces the limits of one tenant in this process. Without limits it costs two comparisons. */
export class TenantLimiter {
  readonly #deps: LimiterDeps;
  #waiting: { readonly at: Instant; count: number } | undefined;
  #counting: Promise<void> | undefined;
  /** Enqueued jobs that the rate still counts: a bucket that empties at the rate. */
  #bucket = { at: 0, level: 0 };
  /** Claims run one after the other while `active` is limited, so that their counts add up. */
  #lastClaim: Promise<unknown> = Promise.resolve();

  constructor(deps: LimiterDeps) {
    this.#deps = deps;
  }

  /** Throws if the jobs do not fit. Undefined if there is nothing to wait for. */
  enqueue(jobs: readonly NewJob[]): Promise<void> | undefined {
    const limits = this.#deps.limits();
    if (limits.payloadBytes !== undefined) this.#checkPayloads(jobs, limits.payloadBytes);
    if (limits.waiting === undefined) {
      this.#spend(jobs.length, limits);
      return undefined;
    }
    return this.#checkWaiting(jobs.length, limits.waiting).then(() => this.#spend(jobs.length, limits));
  }

  #checkPayloads(jobs: readonly NewJob[], most: number): void {
    for (const { payload } of jobs) {
      const current = Buffer.byteLength(payload);
      if (current > most)
        throw new TenantLimitError(this.#deps.tenant, "payloadBytes", { most, current, retryAfter: null });
    }
  }

  #spend(count: number, { rate }: TenantLimits): void {
    if (!rate) return;
    const now = this.#deps.now();
    const drained = ((now - this.#bucket.at) * rate.limit) / rate.per;
    const level = Math.max(0, this.#bucket.level - drained);
    if (level + count > rate.limit) {
      const wait = ((level + count - rate.limit) * rate.per) / rate.limit;
      const numbers = { most: rate.limit, current: Math.ceil(level), retryAfter: Math.ceil(wait) };
      throw new TenantLimitError(this.#deps.tenant, "rate", numbers);
    }
    this.#bucket = { at: now, level: level + count };
  }

  async #checkWaiting(count: number, most: number): Promise<void> {
    await this.#count(most);
    const waiting = this.#waiting as { count: number };
    if (waiting.count + count > most) {
      // Count again before a caller is refused: the last count may be a second old.
      this.#waiting = undefined;
      await this.#count(most);
    }
    const current = (this.#waiting as { count: number }).count;
    if (current + count > most)
      throw new TenantLimitError(this.#deps.tenant, "waiting", { most, current, retryAfter: RETRY_WAITING });
    (this.#waiting as { count: number }).count += count;
  }

  #count(most: number): Promise<void> | undefined {
    const { now, inspect, tenant } = this.#deps;
    if (this.#waiting && now() - this.#waiting.at < COUNTED_FOR) return undefined;
    this.#counting ??= inspect
      .used(tenant, most + 1)
      .then(({ waiting }) => {
        this.#waiting = { at: now(), count: waiting };
      })
      .finally(() => {
        this.#counting = undefined;
      });
    return this.#counting;
  }

  /** Calls `take` with how many of `wanted` jobs the tenant may claim now, or not at all. */
  async claim<Row>(wanted: number, take: (limit: number) => Promise<Row[]>): Promise<Row[]> {
    const { active: most } = this.#deps.limits();
    if (most === undefined) return take(wanted);
    const claim = this.#lastClaim.then(async () => {
      const { active } = await this.#deps.inspect.used(this.#deps.tenant, most);
      const room = Math.min(wanted, most - active);
      return room > 0 ? take(room) : [];
    });
    this.#lastClaim = claim.catch(() => {});
    return claim;
  }
}
