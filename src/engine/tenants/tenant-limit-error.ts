import { CurfewError } from "../../core/errors.ts";
import type { TenantLimits } from "../../core/tenant/tenant-limits.ts";

/** The jobs of a call do not fit into a limit of their tenant. None of them was stored. */
export class TenantLimitError extends CurfewError {
  override readonly name = "TenantLimitError";
  readonly tenant: string;
  readonly limit: Exclude<keyof TenantLimits, "active">;
  readonly most: number;
  /** What the tenant uses now, or the size that was refused. */
  readonly current: number;
  /** Milliseconds to wait before the next try; null if waiting does not help. */
  readonly retryAfter: number | null;

  constructor(
    tenant: string,
    limit: TenantLimitError["limit"],
    numbers: { readonly most: number; readonly current: number; readonly retryAfter: number | null },
  ) {
    const { most, current, retryAfter } = numbers;
    const fix =
      retryAfter === null
        ? "send a smaller payload"
        : `enqueue again in ${retryAfter} ms, or raise the limit`;
    super("tenant_limit", `tenant "${tenant}": ${limit} is ${current} of at most ${most}; ${fix}`, {
      field: "tenant",
    });
    this.tenant = tenant;
    this.limit = limit;
    this.most = most;
    this.current = current;
    this.retryAfter = retryAfter;
  }
}
