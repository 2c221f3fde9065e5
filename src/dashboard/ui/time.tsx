import { now } from "../state/clock.ts";
import { ageText, clockText, exactText, whenText } from "./format.ts";

type When = number | string | null | undefined;

function instantOf(when: When): number | undefined {
  const at = typeof when === "string" ? Date.parse(when) : when;
  return at === null || at === undefined || Number.isNaN(at) ? undefined : at;
}

interface TimeProps {
  readonly at: When;
  /** `ago`: 3 m ago, in 5 m; `clock`: 16:08:39; `when`: with the day where it is another one. */
  readonly as?: "ago" | "clock" | "when";
}

/** An instant: short here, exact on hover, in the viewer's zone and in UTC. */
export function Time({ at, as = "ago" }: TimeProps) {
  const instant = instantOf(at);
  if (instant === undefined) return <span class="t3 nothing">–</span>;
  return (
    <time dateTime={new Date(instant).toISOString()} title={exactText(instant)}>
      {as === "ago" ? (
        <Ago at={instant} />
      ) : as === "clock" ? (
        clockText(instant)
      ) : (
        whenText(instant, now.value)
      )}
    </time>
  );
}

function Ago({ at }: { readonly at: number }) {
  const span = now.value - at;
  const text = ageText(Math.abs(span));
  if (text === "now") return <>now</>;
  return <>{span >= 0 ? `${text} ago` : `in ${text}`}</>;
}
