import type { Tone } from "../../ui/look.ts";

const TONES: readonly (readonly [RegExp, Tone])[] = [
  [
    /^job\.\w*timeout|stalled|(?<!claim_)expired|discarded|stuck$|killed|lost|dead$|\.failed|blocked|full$/,
    "force",
  ],
  [/retrying|released|snoozed|claim_expired|pressure|paused|quiet|skipped|unready|ignored|not_found/, "soft"],
  [/completed|delivered|resumed|relieved|\.ready|unstuck/, "done"],
  [/started|progress|heartbeat|handled|triggered|sent/, "run"],
  [/cancelled|stopped/, "off"],
];

export const toneOf = (type: string): Tone => TONES.find(([names]) => names.test(type))?.[1] ?? "wait";
