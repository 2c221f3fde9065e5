import type { Explanation, Job, WireEvent } from "../../api/wire.ts";
import { href } from "../../state/router.ts";
import { Tag } from "../../ui/badge.tsx";
import { Card, Facts } from "../../ui/card.tsx";
import { shortId } from "../../ui/format.ts";
import { JsonTree } from "../../ui/json-tree.tsx";
import { Time } from "../../ui/time.tsx";
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

export function JobFacts({ job, events, explanation }: FactsProps) {
  const field = (name: string) => explanation?.fields.find((one) => one.field === name)?.value;
  const worker = runsOf(job, events).at(-1)?.worker;
  const end = endedAt(job);
  const said = (name: string, value: string | undefined) =>
    value && value !== "nothing" ? ([name, value] as const) : ([name, undefined] as const);
  // A job that ends at once does not note the rules of its worker.
  const isKnown = explanation?.fixed === true || end === null || job.attempt === 0;
  const attempts =
    field("attempts") === "1" ? "none: 1 attempt" : `${field("attempts")} attempts, ${field("backoff")}`;
  const rules = [
    ["Retries", field("backoff") && attempts] as const,
    said("Except", field("except")),
    ["On timeout", field("mode") === "discard" ? "discarded at once" : "fails, then retries"] as const,
    [
      "In the end",
      field("onExhausted") === "dead-letter" ? "becomes a dead letter" : "is discarded",
    ] as const,
    [
      "Kept",
      job.state !== "discarded" &&
        job.state !== "cancelled" &&
        field("retention") &&
        `${field("retention")} after it completes`,
    ] as const,
  ];
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
            ...(isKnown ? rules : []),
          ]}
        />
      </div>
    </Card>
  );
}

/** What went in, what came out, and what the next attempt would begin with. */
export function Payload({ job }: { readonly job: Job }) {
  const payload = job.args.length === 1 ? job.args[0] : job.args;
  return (
    <>
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
