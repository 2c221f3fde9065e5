import type { Job } from "../../../ojs/replies/wire-replies.ts";
import { now } from "../../state/clock.ts";
import { href, hrefWith, query } from "../../state/router.ts";
import { attemptText } from "../../ui/attempts.ts";
import { Badge, lookOf } from "../../ui/badge.tsx";
import { DeadlineBar } from "../../ui/deadline-bar.tsx";
import { durationText, shortId } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import type { Column } from "../../ui/table.tsx";
import { NameLink } from "../../ui/table.tsx";
import { Time } from "../../ui/time.tsx";
import { closestLimit } from "./closest-limit.ts";

function ranOf(job: Job): string {
  if (job.started_at === undefined) return "–";
  const end = job.discarded_at ?? job.cancelled_at ?? job.completed_at;
  if (end === undefined && job.state !== "active") return "–";
  return durationText((end === undefined ? now.value : Date.parse(end)) - Date.parse(job.started_at));
}

/** The one thing that tells most: the last error, how far it is, when it goes on. */
function lastWord(job: Job) {
  if (job.state === "retryable" && job.next_attempt_at)
    return (
      <>
        <Time at={job.next_attempt_at} />: {job.error?.message}
      </>
    );
  if (job.state === "active" && job.progress !== undefined) return `${Math.round(job.progress * 100)} % done`;
  if (job.error)
    return job.error.cause
      ? `${job.error.message}: ${job.error.cause.code ?? job.error.cause.message}`
      : job.error.message;
  if (job.scheduled_at) return <Time at={job.scheduled_at} as="when" />;
  return null;
}

/** The limit moves with the clock; the rest of the row does not. */
function Limit({ job }: { readonly job: Job }) {
  const isOver = (job.discarded_at ?? job.cancelled_at ?? job.completed_at) !== undefined;
  return (
    <DeadlineBar view={closestLimit(job, isOver ? now.peek() : now.value)} none={isOver ? "–" : "no limit"} />
  );
}

function Sorted() {
  const isUp = query.value.get("order") === "asc";
  return (
    <a
      class="sort"
      href={hrefWith({ order: isUp ? null : "asc", cursor: null })}
      aria-label={`Created, ${isUp ? "oldest" : "newest"} first; turn round`}
    >
      Created{" "}
      <span class={isUp ? "flip" : undefined}>
        <Icon name="down" small />
      </span>
    </a>
  );
}

const LastWord = ({ job }: { readonly job: Job }) => (
  <span class="clip" title={job.error?.message}>
    {lastWord(job)}
  </span>
);

interface Named {
  readonly id: string;
  readonly type: string | null;
  readonly queue: string | null;
}

/** The columns that say which job a row is about. */
export function namingColumns<Row>(jobOf: (row: Row) => Named): readonly Column<Row>[] {
  return [
    {
      id: "job",
      title: "Job",
      phone: "title",
      class: "c-job",
      render: (row) => {
        const { id, type } = jobOf(row);
        return (
          <span class="two">
            <NameLink href={href(`jobs/${id}`)} title={type ?? ""}>
              {type ?? "unknown type"}
            </NameLink>
            <span class="id">{shortId(id)}</span>
          </span>
        );
      },
    },
    {
      id: "queue",
      title: "Queue",
      hide: "narrow",
      phone: "hide",
      class: "c-queue",
      render: (row) => {
        const { queue } = jobOf(row);
        return (
          <span class="clip" title={queue ?? ""}>
            {queue ?? "–"}
          </span>
        );
      },
    },
  ];
}

export function jobColumns(): readonly Column<Job>[] {
  return [
    { id: "state", title: "State", phone: "side", render: (job) => <Badge look={lookOf(job, now.peek())} /> },
    ...namingColumns<Job>((job) => job),
    {
      id: "attempt",
      title: "Attempt",
      isNumber: true,
      hide: "narrow",
      phone: "hide",
      render: (job) => attemptText(job, " / "),
    },
    {
      id: "limit",
      title: "Closest limit",
      phone: "line",
      class: "c-dl",
      render: (job) => <Limit job={job} />,
    },
    {
      id: "ran",
      title: "Ran",
      isNumber: true,
      phone: "hide",
      render: (job) => <span class="nowrap">{ranOf(job)}</span>,
    },
    {
      id: "word",
      title: "Last word",
      phone: "line",
      class: "c-word t2",
      render: (job) => <LastWord job={job} />,
    },
    {
      id: "created",
      title: <Sorted />,
      isNumber: true,
      phone: "hide",
      class: "t2 nowrap",
      render: (job) => <Time at={job.created_at} />,
    },
  ];
}
