import type { Job, JobState } from "../../ojs/replies/wire-replies.ts";
import type { MarkName } from "./drawings.ts";
import { Mark } from "./icon.tsx";
import type { LimitName, Tone } from "./look.ts";

interface Look {
  readonly mark: MarkName;
  readonly tone: Tone;
  readonly word: string;
}

export const STATE_LOOKS: Readonly<Record<JobState, Look>> = {
  pending: { mark: "pending", tone: "wait", word: "Pending" },
  scheduled: { mark: "scheduled", tone: "wait", word: "Scheduled" },
  available: { mark: "waiting", tone: "wait", word: "Waiting" },
  active: { mark: "running", tone: "run", word: "Running" },
  retryable: { mark: "retry", tone: "soft", word: "Retrying" },
  completed: { mark: "done", tone: "done", word: "Completed" },
  discarded: { mark: "discarded", tone: "force", word: "Discarded" },
  cancelled: { mark: "cancelled", tone: "off", word: "Cancelled" },
};

/** How a job looks: its state, and what is known beyond it. */
export function lookOf(
  job: Pick<Job, "state" | "dead_letter" | "error" | "started_at" | "timeout_ms">,
  now: number,
): Look {
  const { state } = job;
  if (state === "discarded" && job.dead_letter) return { mark: "dead", tone: "force", word: "Dead letter" };
  if (state === "discarded" && job.error?.timeout_kind === "enqueue_ttl")
    return { mark: "discarded", tone: "force", word: "Expired" };
  const soft = job.started_at && job.timeout_ms ? Date.parse(job.started_at) + job.timeout_ms : undefined;
  if (state === "active" && !job.started_at) return { mark: "running", tone: "run", word: "Starting" };
  if (state === "active" && soft !== undefined && soft <= now)
    return { mark: "grace", tone: "soft", word: "In grace" };
  return STATE_LOOKS[state] ?? { mark: "open", tone: "off", word: state };
}

export function Badge({ look, pill = false }: { readonly look: Look; readonly pill?: boolean }) {
  return (
    <span class={`badge is-${look.tone}${pill ? " pill" : ""}`}>
      <Mark name={look.mark} />
      {look.word}
    </span>
  );
}

const LETTERS: Readonly<Record<LimitName, string>> = {
  wait: "W",
  attempt: "A",
  grace: "G",
  heartbeat: "H",
  total: "T",
};

/** The letter of one of the five limits; the same everywhere. */
export function LimitLetter({
  name,
  as,
}: {
  readonly name: LimitName;
  readonly as?: "next" | "soft" | "fired" | undefined;
}) {
  return (
    <abbr class={as ? `lim ${as}` : "lim"} title={name}>
      {LETTERS[name]}
    </abbr>
  );
}

export function Tag({ children, tone }: { readonly children: string; readonly tone?: Tone }) {
  return <span class={tone ? `tag is-${tone}` : "tag"}>{children}</span>;
}
