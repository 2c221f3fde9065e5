import { useState } from "preact/hooks";
import type { Explanation, Job, WireEvent } from "../../../ojs/replies/wire-replies.ts";
import { href } from "../../state/router.ts";
import { Tag } from "../../ui/badge.tsx";
import { Card, Facts } from "../../ui/card.tsx";
import { shortId } from "../../ui/format.ts";
import { JsonTree } from "../../ui/json-tree.tsx";
import { Time } from "../../ui/time.tsx";
import { Redacted } from "./redacted.tsx";
import { endedAt, runsOf } from "./timeline/runs.ts";

interface FactsProps {
  readonly job: Job;
  readonly events: readonly WireEvent[];
  readonly explanation: Explanation | undefined;
}

function IdLink({ id, to }: { readonly id: string; readonly to: string }) {
  return (
    <a class="mono" href={to} title={id}>
      {shortId(id)}
    </a>
  );
}

/** What happens to it after an attempt and after its end. A job that ends at once does not note the rules of its worker. */
function rulesOf(
  job: Job,
  { fields, fixed }: Explanation,
): (readonly [name: string, value: string | undefined])[] {
  if (!fixed && endedAt(job) !== null && job.attempt > 0) return [];
  const field = (name: string) => fields.find((one) => one.field === name)?.value;
  const attempts =
    field("attempts") === "1" ? "none: 1 attempt" : `${field("attempts")} attempts, ${field("backoff")}`;
  const except = field("except") === "nothing" ? undefined : field("except");
  const isKept = job.state !== "discarded" && job.state !== "cancelled" && field("retention") !== undefined;
  return [
    ["Retries", field("backoff") && attempts],
    ["Except", except],
    ["On timeout", field("mode") === "discard" ? "discarded at once" : "fails, then retries"],
    ["In the end", field("onExhausted") === "dead-letter" ? "becomes a dead letter" : "is discarded"],
    ["Kept", isKept ? `${field("retention")} after it completes` : undefined],
  ];
}

export function JobFacts({ job, events, explanation }: FactsProps) {
  const worker = runsOf(job, events).at(-1)?.worker;
  const end = endedAt(job);
  return (
    <Card title="Job">
      <div class="body">
        <Facts
          of={[
            [
              "Queue",
              <>
                <a href={href("jobs", { queue: job.queue })}>{job.queue}</a>, priority {job.priority}
              </>,
            ],
            [
              "Created",
              <>
                <Time at={job.created_at} as="when" />{" "}
                <span class="t3">
                  <Time at={job.created_at} />
                </span>
              </>,
            ],
            ["Due", job.scheduled_at && <Time at={job.scheduled_at} as="when" />],
            [
              "Ended",
              end !== null && (
                <>
                  <Time at={end} as="when" />{" "}
                  <span class="t3">
                    <Time at={end} />
                  </span>
                </>
              ),
            ],
            ["Worker", worker && <IdLink id={worker} to={href("workers", { worker })} />],
            [
              "Workflow",
              job.workflow_id && <IdLink id={job.workflow_id} to={href(`workflows/${job.workflow_id}`)} />,
            ],
            [
              "Tags",
              job.tags && job.tags.length > 0 && (
                <span class="tags">
                  {job.tags.map((tag) => (
                    <Tag key={tag}>{tag}</Tag>
                  ))}
                </span>
              ),
            ],
            ...(explanation ? rulesOf(job, explanation) : []),
          ]}
        />
      </div>
    </Card>
  );
}

/** What went in, what came out, and what the next attempt would begin with. */
export function Payload({ job: asListed }: { readonly job: Job }) {
  const [revealed, setRevealed] = useState<Job>();
  const job = revealed?.id === asListed.id ? revealed : asListed;
  const payload = job.args.length === 1 ? job.args[0] : job.args;
  return (
    <>
      {job.redacted && (
        <Redacted
          job={asListed}
          isRevealed={job === revealed}
          onReveal={setRevealed}
          onHide={() => setRevealed(undefined)}
        />
      )}
      <Card title="Payload">
        <div class="body">
          <JsonTree value={payload} what="the payload" />
        </div>
      </Card>
      {job.result !== undefined && (
        <Card title="Result">
          <div class="body">
            <JsonTree value={job.result} what="the result" />
          </div>
        </Card>
      )}
      {job.checkpoint && (
        <Card title="Checkpoint" note="the next attempt begins with it">
          <div class="body">
            <JsonTree value={job.checkpoint.state} what="the checkpoint" />
          </div>
        </Card>
      )}
      {Object.keys(job.meta).length > 0 && (
        <Card title="Meta">
          <div class="body">
            <JsonTree value={job.meta} what="the meta" />
          </div>
        </Card>
      )}
    </>
  );
}
