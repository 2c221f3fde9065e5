import { type Command, Option } from "commander";
import { countNumber, withPage, withTarget } from "../declare.ts";
import { paint, paintState, printable } from "../output/paint.ts";
import { type Column, fieldsText, listText, tableText } from "../output/table.ts";
import { relativeText } from "../output/times.ts";
import { act } from "../run-command.ts";
import type { Fields } from "../target/target.ts";

const PATH = "/ojs/v1/workflows";

export function register(workflows: Command): void {
  workflows.description("Workflows: jobs that run after each other or at the same time.");
  declareList(workflows.command("ls"));
  declareShow(workflows.command("show"));
}

const columns = (now: number): Column<Fields>[] => [
  { title: "ID", show: ({ id }) => String(id) },
  { title: "STATE", show: ({ state }) => paintState(String(state)) },
  { title: "KIND", show: ({ type }) => String(type), drop: 4 },
  { title: "JOBS", show: (workflow) => progressText(workflow), align: "right" },
  { title: "STARTED", show: ({ created_at }) => relativeText(created_at, now), drop: 2 },
  { title: "ENDED", show: ({ completed_at }) => relativeText(completed_at, now), drop: 3 },
  { title: "NAME", show: ({ name }) => printable(String(name ?? "")), shrinkTo: 10, drop: 1 },
];

function progressText({ jobs_completed, jobs_total }: Fields): string {
  return `${jobs_completed}/${jobs_total}`;
}

interface ListOptions {
  readonly state?: string;
  readonly oldest?: boolean;
  readonly limit: number;
}

const NO_WORKFLOWS = "No workflows. Code starts them: engine.workflows.start(chain([…]))";

function declareList(command: Command): void {
  command.description("List workflows by the time of their start, the newest first.");
  withTarget(command)
    .addOption(
      new Option("--state <state>", "only workflows in this state").choices([
        "running",
        "completed",
        "failed",
        "cancelled",
      ]),
    )
    .option("--oldest", "the oldest first")
    .option("--limit <count>", "at most this many, up to 200", countNumber, 50);
  withPage(command, {
    examples: [
      ["workflows ls --state running", "workflows that have not ended"],
      ["workflows ls --state running --oldest", "the one that runs longest comes first"],
    ],
    json: '{"items":[{"id","type","name","state","jobs_total","jobs_completed","created_at","completed_at","failure"}],"has_more"}',
  });
  act<ListOptions>(command, async ({ target, output }, options) => {
    const { items, pagination } = await target.get(PATH, {
      state: options.state,
      order: options.oldest ? "asc" : "desc",
      limit: Math.max(1, Math.min(200, options.limit)),
    });
    output.answer({ items, has_more: (pagination as Fields).has_more }, () =>
      listText(columns(target.now()), items as readonly Fields[], NO_WORKFLOWS),
    );
  });
}

function declareShow(command: Command): void {
  command.description("Show a workflow and its first 200 jobs.").argument("<id>", "its id");
  withPage(withTarget(command), {
    examples: [
      ["workflows show 0198f7e2-7b1c-7000-8000-000000000001", "its progress, and the job that it waits for"],
    ],
    json: '{"id","state",…,"steps":[{"id","type","state","progress","started_at"?,"completed_at"?}]}',
  });
  act(command, async ({ target, output }, _options, [id]) => {
    const { workflow } = await target.get(`${PATH}/${encodeURIComponent(id as string)}`);
    output.answer(workflow, () => workflowText(workflow as Fields, target.now()));
  });
}

function workflowText(workflow: Fields, now: number): string {
  const failure = workflow.failure as Fields | null;
  const fields = fieldsText([
    ["id", String(workflow.id)],
    ["state", paintState(String(workflow.state))],
    ["kind", String(workflow.type)],
    [
      "jobs",
      `${progressText(workflow)}, ${workflow.jobs_failed} failed, ${workflow.jobs_cancelled} cancelled`,
    ],
    ["started", relativeText(workflow.created_at, now)],
    ...(workflow.completed_at === null ? [] : [["ended", relativeText(workflow.completed_at, now)] as const]),
    ...(workflow.deadline === null ? [] : [["deadline", relativeText(workflow.deadline, now)] as const]),
    ...(failure === null
      ? []
      : [["failure", paint("red", printable(`${failure.reason} ${failure.message ?? ""}`))] as const]),
  ]);
  const steps = workflow.steps as readonly Fields[];
  const table = tableText<Fields>(
    [
      { title: "JOB", show: ({ id }) => String(id) },
      { title: "STATE", show: ({ state }) => paintState(String(state)) },
      { title: "STARTED", show: ({ started_at }) => relativeText(started_at, now), drop: 1 },
      { title: "TYPE", show: ({ type }) => printable(String(type)), shrinkTo: 10 },
    ],
    steps,
  );
  return `${fields}\n\n${table}`;
}
