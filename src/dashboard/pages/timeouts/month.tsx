import type { Timeout } from "../../../ojs/replies/wire-replies.ts";
import { serverNow } from "../../state/clock.ts";
import { hrefWith } from "../../state/router.ts";
import { plural } from "../../ui/format.ts";
import { MonthHead } from "../../ui/month-head.tsx";
import { countByDay, type Day, dayName } from "./calendar.ts";

const WEEKDAYS = ["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"] as const;
const monthText = new Intl.DateTimeFormat("en-GB", { month: "long", year: "numeric" });
const dayText = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long" });

interface MonthProps {
  readonly weeks: readonly (readonly Day[])[];
  readonly timeouts: readonly Timeout[];
  readonly chosen: string;
  readonly isComplete: boolean;
}

const monthName = (at: number) => dayName(at).slice(0, 7);

/** A month with a bar on each day: how many are due. Every day is a link. */
export function Month({ weeks, timeouts, chosen, isComplete }: MonthProps) {
  const counts = countByDay(timeouts);
  const most = Math.max(1, ...counts.values());
  const first = weeks[0]?.find(({ isInMonth }) => isInMonth)?.from ?? serverNow();
  const date = new Date(first);
  const step = (by: number) => monthName(new Date(date.getFullYear(), date.getMonth() + by, 15).getTime());
  const today = dayName(serverNow());
  return (
    <section class="card month" aria-label={`Calendar of ${monthText.format(first)}`}>
      <MonthHead
        name={monthText.format(first)}
        previous={hrefWith({ month: step(-1), day: null })}
        next={hrefWith({ month: step(1), day: null })}
      />
      <div class="days">
        {WEEKDAYS.map((name) => (
          <span key={name} class="wd" aria-hidden="true">
            {name}
          </span>
        ))}
        {weeks.flat().map(({ name, from, number, isInMonth }) => {
          const count = counts.get(name) ?? 0;
          return (
            <a
              key={name}
              class={isInMonth ? "day" : "day out"}
              href={hrefWith({ day: name, month: monthName(first) })}
              aria-current={name === chosen ? "date" : undefined}
              data-today={name === today ? "" : undefined}
              aria-label={`${dayText.format(from)}, ${count === 0 ? "nothing due" : plural(count, "timeout")}`}
            >
              {number}
              <svg class="due" aria-hidden="true">
                {count > 0 && (
                  <rect
                    x={`${50 - Math.max(10, (count / most) * 50)}%`}
                    width={`${Math.max(20, (count / most) * 100)}%`}
                    height="3"
                    rx="1.5"
                  />
                )}
              </svg>
            </a>
          );
        })}
      </div>
      <p class="foot">
        {isComplete ? "Bars: how many are due." : "Only the first 2,000 of this month are counted."}
      </p>
    </section>
  );
}
