import type { Job, Workflow } from "../../../ojs/replies/wire-replies.ts";
import { readWorkflow } from "../../api/operations.ts";
import { type Resource, useResource } from "../../api/resource.ts";
import { href } from "../../state/router.ts";
import { Card } from "../../ui/card.tsx";
import { Graph } from "../workflow/graph.tsx";
import { layoutOf } from "../workflow/layers.ts";
import { nameOf } from "../workflows/workflow-look.ts";

type Reply = Resource<{ readonly workflow: Workflow }>;

/** The workflow that a job is a step of; nothing is read for other jobs. */
export function useWorkflowOf(job: Job | undefined): Reply {
  const id = job?.workflow_id;
  return useResource(id ? `workflow of ${id}` : null, (signal) => readWorkflow(id ?? "", signal), {
    live: 3_000,
  });
}

/** What a step waited for and what waits for it, as a drawing in which each step is a link. */
export function InWorkflow({ job, reply }: { readonly job: Job; readonly reply: Reply }) {
  const workflow = reply.data?.workflow;
  if (!workflow) return null;
  return (
    <Card
      title="Workflow"
      note={nameOf(workflow)}
      aside={<a href={href(`workflows/${workflow.id}`)}>Open it</a>}
    >
      <Graph layout={layoutOf(workflow)} current={job.id} />
    </Card>
  );
}
