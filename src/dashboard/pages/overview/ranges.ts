/** How far back plots look, and in what steps. */
export const RANGES = {
  "1h": { span: 3_600_000, period: "1m", says: "hour" },
  "6h": { span: 21_600_000, period: "5m", says: "6 hours" },
  "24h": { span: 86_400_000, period: "15m", says: "day" },
  "7d": { span: 604_800_000, period: "6h", says: "week" },
} as const;
export type Range = keyof typeof RANGES;
