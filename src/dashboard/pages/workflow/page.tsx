import type { Workflow, WorkflowStep } from "../../../ojs/replies/wire-replies.ts";
import { cancelWorkflow, readWorkflow } from "../../api/operations.ts";
import { useResource } from "../../api/resource.ts";
import { now } from "../../state/clock.ts";
import { href } from "../../state/router.ts";
import { whyNot } from "../../state/session.ts";
import { ActionForm } from "../../ui/action-form.tsx";
import { Badge, STATE_LOOKS } from "../../ui/badge.tsx";
import { Button, CopyId } from "../../ui/button.tsx";
import { Callout } from "../../ui/callout.tsx";
import { Card, Crumb, Facts, PageHead } from "../../ui/card.tsx";
import { durationText, plural, shortId } from "../../ui/format.ts";
import { JsonTree } from "../../ui/json-tree.tsx";
import { Shown } from "../../ui/shown.tsx";
import { type Column, NAME_COLUMN, NameLink, Table } from "../../ui/table.tsx";
import { Time } from "../../ui/time.tsx";
import { type FormEnd, useForm } from "../../ui/use-form.ts";
import { Deadline } from "../workflows/page.tsx";
import { KINDS, nameOf, WORKFLOW_LOOKS } from "../workflows/workflow-look.ts";
import { Graph } from "./graph.tsx";
import { layoutOf } from "./layers.ts";
import { countsOf } from "./step-counts.ts";

export function Page({ params }: { readonly params: Readonly<Record<string, string>> }) {
  const id = params.id ?? "";
  const workflow = useResource(`workflow ${id}`, (signal) => readWorkflow(id, signal), { live: 3_000 });
  return (
    <Shown of={workflow} what="The workflow">
      {(data) => <Details workflow={data.workflow} onChange={workflow.reload} />}
    </Shown>
  );
}

function Details({ workflow, onChange }: { readonly workflow: Workflow; readonly onChange: () => void }) {
  const { form: isCancelling, open, end } = useForm<true>(onChange);
  const { steps = [], steps_total, failure } = workflow;
  const layout = layoutOf(workflow);
  return (
    <>
      <Head workflow={workflow} onCancel={() => open(true)} />
      {failure && (
        <Callout tone="force">
          <p class="grow">
            <b>
              Failed: {failure.job_type ?? failure.reason}
              {failure.message ? ". " : ""}
            </b>
            {failure.message}
          </p>
          {failure.job_id && (
            <a class="btn small" href={href(`jobs/${failure.job_id}`)}>
              Open the job
            </a>
          )}
        </Callout>
      )}
      <Card title="Steps" note={KINDS[workflow.type]} aside={<Legend workflow={workflow} />}>
        <Graph layout={layout} />
        {!layout.isSaid && (
          <p class="graph-note t3 small">
            The server says the order of the steps. Those that ran at the same time stand above each other.
          </p>
        )}
        <Table
          label="Steps"
          rows={steps}
          columns={COLUMNS}
          idOf={(step) => step.id}
          hrefOf={(step) => href(`jobs/${step.id}`)}
        />
        {steps_total > steps.length && (
          <p class="foot">
            {plural(steps.length, "step is", "steps are")} shown of {steps_total}.
          </p>
        )}
      </Card>
      <About workflow={workflow} />
      {isCancelling && <CancelForm workflow={workflow} {...end} />}
    </>
  );
}

function About({ workflow }: { readonly workflow: Workflow }) {
  const { id, meta } = workflow;
  return (
    <div class="below">
      <Card title="About it">
        <div class="pad stack-gap">
          <Facts
            of={[
              ["Id", <CopyId key="id" id={id} />],
              ["Started", <Time key="at" at={workflow.created_at} as="when" />],
              ["Ended", workflow.completed_at && <Time at={workflow.completed_at} as="when" />],
              ["Deadline", <Deadline key="deadline" workflow={workflow} />],
            ]}
          />
          {Object.keys(meta).length > 0 && <JsonTree value={meta} what="the meta data" />}
        </div>
      </Card>
    </div>
  );
}

interface CancelProps extends FormEnd {
  readonly workflow: Workflow;
}

function CancelForm({ workflow, ...end }: CancelProps) {
  const { id, state } = workflow;
  return (
    <ActionForm
      title={`Cancel ${nameOf(workflow)}`}
      action="Cancel the workflow"
      isDanger
      right="enqueue"
      blocked={state === "running" ? undefined : "It has ended."}
      act={(reason) => cancelWorkflow(id, reason)}
      said="The workflow is cancelled."
      does="Steps that wait do not start. Handlers of steps that run hear the signal, and nothing they write counts. Steps that completed stay as they are."
      {...end}
    />
  );
}

function Head({ workflow, onCancel }: { readonly workflow: Workflow; readonly onCancel: () => void }) {
  const { state, created_at, completed_at, steps_total } = workflow;
  const { completed } = countsOf(workflow);
  const took = (completed_at === null ? now.value : Date.parse(completed_at)) - Date.parse(created_at);
  return (
    <PageHead
      title={workflow.name ?? shortId(workflow.id)}
      tab={`Workflow ${nameOf(workflow)}`}
      above={<Crumb href={href("workflows")}>Workflows</Crumb>}
      beside={<Badge look={WORKFLOW_LOOKS[state]} pill />}
      below={`${completed} of ${plural(steps_total, "step")} completed, ${state === "running" ? "for" : "in"} ${durationText(took)}.`}
    >
      <Button
        kind="danger"
        whyNot={whyNot("enqueue") ?? (state === "running" ? undefined : "It has ended.")}
        onClick={onCancel}
      >
        Cancel…
      </Button>
    </PageHead>
  );
}

function Legend({ workflow }: { readonly workflow: Workflow }) {
  const { completed, failed, cancelled } = countsOf(workflow);
  const left = workflow.steps_total - completed - failed - cancelled;
  return (
    <span class="t2 small">
      {[
        `${completed} completed`,
        failed > 0 && `${failed} failed`,
        cancelled > 0 && `${cancelled} cancelled`,
        left > 0 && `${left} to go`,
      ]
        .filter(Boolean)
        .join(", ")}
    </span>
  );
}

const COLUMNS: readonly Column<WorkflowStep>[] = [
  {
    id: "type",
    title: "Step",
    ...NAME_COLUMN,
    render: ({ id, type }) => <NameLink href={href(`jobs/${id}`)}>{type}</NameLink>,
  },
  { id: "state", title: "State", phone: "side", render: ({ state }) => <Badge look={STATE_LOOKS[state]} /> },
  {
    id: "progress",
    title: "Progress",
    isNumber: true,
    phone: "hide",
    render: ({ progress }) => (progress === null ? "–" : `${Math.round(progress * 100)} %`),
  },
  {
    id: "started",
    title: "Started",
    isNumber: true,
    class: "t2 nowrap",
    render: ({ started_at }) => <Time at={started_at} as="when" />,
  },
  {
    id: "ran",
    title: "Ran",
    isNumber: true,
    render: ({ started_at, completed_at }) =>
      started_at === undefined ? (
        <span class="t3">–</span>
      ) : (
        <span class="nowrap">
          {durationText((completed_at ? Date.parse(completed_at) : now.value) - Date.parse(started_at))}
        </span>
      ),
  },
];
