import { refuse } from "../core/errors.ts";
import { preparePayload } from "../core/job/enqueue/envelope.ts";
import type { Job } from "../core/job/job-view.ts";
import type { Duration } from "../core/time.ts";
import type { WorkflowNode } from "../core/workflow/node.ts";
import type { WorkflowHandleApi, WorkflowsApi } from "../engine/curfew-api.ts";
import type { WorkflowOptions } from "../engine/workflows/start-options.ts";
import type { WorkflowSummary, WorkflowView } from "../engine/workflows/workflow-view.ts";
import type { Awaited } from "../ojs/call-names.ts";
import { portableWorkflow } from "../ojs/workflow-nodes.ts";
import type { Caller } from "./caller.ts";
import { readJob } from "./remote-jobs.ts";
import { waitFor } from "./remote-wait.ts";

/** A workflow at the server. */
class RemoteWorkflowHandle<Result = unknown> implements WorkflowHandleApi<Result> {
  readonly id: string;
  readonly duplicate: boolean;
  readonly #caller: Caller;

  constructor(caller: Caller, id: string, duplicate = false) {
    this.#caller = caller;
    this.id = id;
    this.duplicate = duplicate;
  }

  view(): Promise<WorkflowView | null> {
    return this.#caller.call("workflows.view", [this.id]);
  }

  /** The server sends few steps at a time, because each may be large. */
  async steps(page: { readonly from?: number; readonly limit?: number } = {}): Promise<(Job | null)[]> {
    const { from = 0, limit = 100 } = page;
    const steps: (Job | null)[] = [];
    for (;;) {
      const asked = { ...page, from: from + steps.length, limit: limit - steps.length };
      const found = await this.#caller.call<(Job | null)[]>("workflows.steps", [this.id, asked]);
      steps.push(...found.map((job) => job && readJob(job)));
      if (found.length === 0 || steps.length >= limit) return steps;
    }
  }

  cancel(): Promise<WorkflowSummary> {
    return this.#caller.call("workflows.cancel", [this.id]);
  }

  result(options: { readonly within?: Duration; readonly signal?: AbortSignal } = {}): Promise<Result> {
    return waitFor<Result>(this.#caller, `workflow ${this.id}`, options, (wait) =>
      this.#caller.call<Awaited<Result>>("workflows.result", [this.id, wait], { wait, about: this.id }),
    );
  }
}

export function remoteWorkflows(caller: Caller): WorkflowsApi {
  return {
    async start<Result>(node: WorkflowNode<Result>, options: WorkflowOptions = {}) {
      if (caller.sealing)
        throw refuse(
          "not_over_http",
          "encryption",
          "a workflow",
          "the client does not encrypt workflows: start it with openEngine, or with a client without encryption",
        );
      for (const name of ["tx", "parent"] as const)
        if (options[name] !== undefined)
          throw refuse(
            "not_over_http",
            `options.${name}`,
            typeof options[name],
            "start the workflow with openEngine on the same database, or leave it out",
          );
      const sent = await portableWorkflow(node, async ({ definition, payload }) =>
        JSON.parse(await preparePayload(definition, payload, caller.documentLimit)),
      );
      const id = options.id ?? caller.nextId();
      const made = await caller.call<{ readonly duplicate: boolean }>("workflows.start", [
        sent.node,
        { ...options, id },
        sent.definitions,
      ]);
      // A generated id is known only if an earlier try arrived and its answer was lost.
      return new RemoteWorkflowHandle<Result>(caller, id, made.duplicate && options.id !== undefined);
    },
    get: <Result>(id: string) => new RemoteWorkflowHandle<Result>(caller, id),
    list: (page) => caller.call("workflows.list", [page]),
    cancel: (id) => caller.call("workflows.cancel", [id]),
  };
}
