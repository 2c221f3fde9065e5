import { LimitLetter } from "./badge.tsx";
import type { DeadlineView } from "./look.ts";

/** Where the limit stands in the bar, in per cent; behind it is grace. */
const LIMIT_AT = 82;

const LETTERS = { over: "fired", near: "soft", late: "soft" } as const;

/** The deadline timeline in one cell of a list. */
export function DeadlineBar({
  view,
  none = "no limit",
}: {
  readonly view: DeadlineView | null;
  /** What is said without a limit. */
  readonly none?: string;
}) {
  if (!view) return <span class="t3">{none}</span>;
  const { name, used, look, hasGrace, text, tone } = view;
  const end = Math.min(100, Math.max(0, used) * LIMIT_AT);
  return (
    <div class="dl">
      <LimitLetter name={name} as={LETTERS[look as keyof typeof LETTERS]} />
      <svg class={look} role="img" aria-label={`${name}: ${text}`}>
        <rect class="dl-track" x="0" y="2" width={`${LIMIT_AT}%`} height="4" rx="2" />
        {hasGrace && (
          <rect
            class="dl-grace"
            fill="url(#hatch)"
            x={`${LIMIT_AT}%`}
            y="2"
            width={`${100 - LIMIT_AT}%`}
            height="4"
          />
        )}
        <rect class="dl-used" x="0" y="2" width={`${Math.min(end, LIMIT_AT)}%`} height="4" rx="2" />
        {end > LIMIT_AT && (
          <rect class="dl-over" x={`${LIMIT_AT}%`} y="2" width={`${end - LIMIT_AT}%`} height="4" />
        )}
        <rect class="dl-end" x={`${LIMIT_AT}%`} y="0" width="1.5" height="8" />
      </svg>
      <small class={tone ? `clip is-${tone}` : "clip"}>{text}</small>
    </div>
  );
}
