interface MeterProps {
  /** 0 to 1; more is shown as full. */
  readonly share: number;
  readonly label: string;
  readonly tone?: "bad" | "warn" | undefined;
}

/** How much of a limit is used, as a bar. */
export function Meter({ share, label, tone }: MeterProps) {
  const width = Math.max(0, Math.min(1, share)) * 100;
  return (
    <svg class={tone ? `meter ${tone}` : "meter"} role="img" aria-label={label}>
      <rect class="rail" width="100%" height="4" rx="2" />
      <rect class="used" width={`${width}%`} height="4" rx="2" />
    </svg>
  );
}
