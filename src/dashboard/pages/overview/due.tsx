import type { Job, Page } from "../../../ojs/replies/wire-replies.ts";
import { now } from "../../state/clock.ts";
import { href } from "../../state/router.ts";
import { LimitLetter } from "../../ui/badge.tsx";
import { Card } from "../../ui/card.tsx";
import { clockText, shortClockText } from "../../ui/format.ts";
import { type Deadline, type DeadlineKind, deadlineOf } from "./deadlines.ts";

const SPAN = 30 * 60_000;
/** What ends this soon is drawn in amber: there is still time to act, but little. */
const SOON = 2 * 60_000;
const KINDS: readonly DeadlineKind[] = ["wait", "attempt", "total"];
const TICKS = [0, 5, 10, 15, 20, 25, 30];

interface DueProps {
  readonly active: Page<Job> | undefined;
  readonly waiting: Page<Job> | undefined;
}

/** Every deadline of the next half hour as a line of its own: where they crowd, something is about to happen. */
export function Due({ active, waiting }: DueProps) {
  const at = now.value;
  const jobs = [...(active?.items ?? []), ...(waiting?.items ?? [])];
  const due = jobs.map(deadlineOf).filter((one): one is Deadline => one !== null && one.at < at + SPAN);
  const isPart = active?.pagination.has_more || waiting?.pagination.has_more;
  return (
    <Card
      title="Due in the next 30 minutes"
      note={isPart ? `each line is one deadline, of ${jobs.length} jobs` : "each line is one deadline"}
      class="due"
    >
      {due.length === 0 ? (
        <p class="body t3">Nothing that runs or waits has a deadline in the next half hour.</p>
      ) : (
        <div class="rugs">
          {KINDS.map((kind) => (
            <Rug key={kind} kind={kind} deadlines={due.filter((one) => one.kind === kind)} now={at} />
          ))}
          <span class="rugx" aria-hidden="true">
            {TICKS.map((minutes) => (
              <span key={minutes}>{minutes === 0 ? "now" : shortClockText(at + minutes * 60_000)}</span>
            ))}
          </span>
        </div>
      )}
    </Card>
  );
}

function Rug({
  kind,
  deadlines,
  now: at,
}: {
  readonly kind: DeadlineKind;
  readonly deadlines: readonly Deadline[];
  readonly now: number;
}) {
  return (
    <>
      <LimitLetter name={kind} />
      <span>{kind}</span>
      {/* biome-ignore lint/a11y/useSemanticElements: a group of links inside of a drawing. */}
      <svg role="group" aria-label={`${deadlines.length} by ${kind}`}>
        <line class="g-grid" x1="0" x2="100%" y1="9" y2="9" />
        {deadlines.map(({ job, at: when }) => {
          const left = when - at;
          return (
            <a
              key={job.id}
              href={href(`jobs/${job.id}`)}
              tabIndex={-1}
              aria-label={`${job.type}, ${clockText(when)}`}
            >
              <rect
                class={`rug ${kind}${left < SOON ? " soon" : ""}`}
                x={`${(Math.max(0, left) / SPAN) * 99.6}%`}
                y="1"
                width="2"
                height="16"
              >
                <title>{`${job.type}, ${clockText(when)}`}</title>
              </rect>
            </a>
          );
        })}
      </svg>
      <b>{deadlines.length}</b>
    </>
  );
}
