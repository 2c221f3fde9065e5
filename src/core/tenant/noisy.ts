/** What a tenant has running and waiting. */
interface Use {
  readonly active: number;
  readonly waiting: number;
}

/** Why a tenant counts as a noisy neighbour, in the words of Open Job Spec. */
export type NoisySignal = "queue_depth_ratio" | "active_job_ratio";

/** A tenant whose jobs wait more than this many times the median of all. */
const DEPTH_RATIO = 10;
/** A tenant that runs more than this share of all jobs. */
const ACTIVE_SHARE = 0.5;
/** Below these numbers nobody is in anybody's way. */
const LEAST_WAITING = 100;
const LEAST_ACTIVE = 10;

/** The signals of each of these tenants, among them. One tenant alone has no neighbours. */
export function noisySignals(uses: readonly Use[]): readonly (readonly NoisySignal[])[] {
  const depths = uses.map(({ waiting }) => waiting).sort((a, b) => a - b);
  const median = depths[Math.floor((depths.length - 1) / 2)] ?? 0;
  const running = uses.reduce((sum, { active }) => sum + active, 0);
  return uses.map(({ active, waiting }) => {
    if (uses.length < 2) return [];
    const isDeep = waiting >= LEAST_WAITING && waiting > median * DEPTH_RATIO;
    const isBusy = active >= LEAST_ACTIVE && active > running * ACTIVE_SHARE;
    return [
      ...(isDeep ? (["queue_depth_ratio"] as const) : []),
      ...(isBusy ? (["active_job_ratio"] as const) : []),
    ];
  });
}
