import type { Command } from "commander";
import { withPage, withTarget } from "../declare.ts";
import { printable } from "../output/paint.ts";
import { listText } from "../output/table.ts";
import { workerColumns } from "../output/worker-columns.ts";
import { act, type TargetContext } from "../run-command.ts";
import type { Fields } from "../target/target.ts";

const PATH = "/ojs/v1/admin/workers";

export function register(workers: Command): void {
  workers.description("Workers: processes that run jobs.");
  const ls = workers.command("ls").description("List workers that sent a beat lately.");
  withPage(withTarget(ls), {
    examples: [["workers ls", "workers, their queues and their last beats"]],
    json: '{"items":[{"id","state","remote","queues","active_jobs","last_heartbeat_at",…}],"summary"}',
  });
  act(ls, list);
  const directives = [
    ["quiet", "quiet", "Ask a remote worker to take no more jobs; running jobs may finish."],
    ["resume", "resume", "Let a quiet worker take jobs again."],
    ["stop", "terminate", "Ask a remote worker to finish its running jobs and stop."],
  ] as const;
  for (const [name, action, says] of directives) {
    const command = workers
      .command(name)
      .description(says)
      .argument("<worker>", "its id, as workers ls shows it");
    withPage(withTarget(command), {
      examples: [[`workers ${name} 0198f7e2-7b1c-7000-8000-000000000001`, "takes effect with its next beat"]],
      json: '{"id","state","directive",…}: the worker',
      more: "Only remote workers can be asked. A worker inside a process that has the store open stops with that process.",
    });
    act(command, (context, _options, [id]) => direct(context, id as string, action));
  }
}

async function list({ target, output }: TargetContext): Promise<void> {
  const { items, summary } = await target.get(PATH, { per_page: 200 });
  const columns = workerColumns(target.now(), { shrinkTo: 36, dropQueues: 2 });
  output.answer({ items, summary }, () =>
    listText(
      columns,
      items as readonly Fields[],
      "No workers sent a beat lately. Start one with: curfew work <file>",
    ),
  );
}

async function direct({ target, output }: TargetContext, id: string, action: string): Promise<void> {
  const { worker } = await target.send("POST", `${PATH}/${encodeURIComponent(id)}/${action}`, {});
  output.answer(worker, () => `Worker ${printable(id)} is asked to ${action} with its next beat.`);
}
