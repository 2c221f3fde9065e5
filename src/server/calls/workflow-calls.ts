import { z } from "zod";
import { refuse } from "../../core/errors.ts";
import { visibleRow } from "../../core/job/documents/redaction.ts";
import type { AnyDefinition } from "../../core/job/job-definition.ts";
import { jobView } from "../../core/job/job-view.ts";
import type { PortableDefinition } from "../../core/job/transfer/portable.ts";
import {
  type AnyNode,
  type BatchCallbacks,
  batch,
  chain,
  graph,
  group,
  type StepNode,
  step,
} from "../../core/workflow/node.ts";
import type { WorkflowOptions } from "../../engine/workflows/start-options.ts";
import { stepRows } from "../../engine/workflows/workflow-handle.ts";
import type { WorkflowPage } from "../../engine/workflows/workflows.ts";
import type { PortableNode, PortableStep } from "../../ojs/workflow-nodes.ts";
import { turn } from "../http/turn.ts";
import { limited } from "../wire/job-page.ts";
import { awaited, call, definitionOf, JsonText, options, text, wait } from "./call.ts";

/** Steps of one request: storing more would block the event loop for more than 50 ms. */
const MOST_STEPS = 5_000;
/** Steps of one reply: each may hold several MB. */
const MOST_ROWS = 16;
const ROWS_AT_ONCE = 4;
/** Characters after which a reply ends early: the client asks for the rest. */
const MOST_TEXT = 2_000_000;
/** Steps that are read in one turn of the event loop. */
const STEPS_PER_TURN = 500;

/** Makes the nodes that the engine takes from nodes that were sent. Everything in them is checked here or by the engine. */
class NodeReader {
  readonly #definitions: readonly AnyDefinition[];
  #steps = 0;

  constructor(definitions: readonly PortableDefinition[]) {
    this.#definitions = definitions.map(definitionOf);
  }

  read(node: PortableNode, field: string): AnyNode {
    if (typeof node !== "object" || node === null)
      throw refuse("invalid_workflow", field, node, "send a step, chain, group or batch");
    if (node.kind === "step") return this.#step(node, field);
    if (node.kind === "graph") return this.#graph(node.steps, `${field}.steps`);
    if (node.kind !== "chain" && node.kind !== "group" && node.kind !== "batch")
      throw refuse(
        "invalid_workflow",
        `${field}.kind`,
        (node as { kind?: unknown }).kind,
        "use step, chain, group, batch or graph",
      );
    const { nodes } = node;
    if (!Array.isArray(nodes))
      throw refuse("invalid_workflow", `${field}.nodes`, nodes, "send a list of nodes");
    const inner = nodes.map((one, index) => this.read(one, `${field}.nodes[${index}]`)) as [
      AnyNode,
      ...AnyNode[],
    ];
    if (node.kind === "chain") return chain(inner) as AnyNode;
    if (node.kind === "group") return group(inner) as AnyNode;
    const { callbacks = {} } = node as Extract<PortableNode, { kind: "batch" }>;
    return batch(inner, this.#callbacks(callbacks, `${field}.callbacks`)) as AnyNode;
  }

  #graph(steps: Extract<PortableNode, { kind: "graph" }>["steps"], field: string): AnyNode {
    if (typeof steps !== "object" || steps === null || Array.isArray(steps))
      throw refuse("invalid_workflow", field, steps, "send an object of steps by name");
    const read = Object.entries(steps).map(([name, said]) => {
      const run = this.read(said?.run, `${field}.${name}.run`);
      return [name, { after: said.after, run }] as const;
    });
    return graph(Object.fromEntries(read)) as AnyNode;
  }

  #callbacks(said: Readonly<Record<string, PortableStep>>, field: string): BatchCallbacks {
    if (typeof said !== "object" || said === null || Array.isArray(said))
      throw refuse("invalid_workflow", field, said, "send an object of steps by name, or leave it out");
    const read = Object.entries(said).map(([name, node]) => [name, this.read(node, `${field}.${name}`)]);
    return Object.fromEntries(read) as BatchCallbacks;
  }

  #step({ job, payload, options: how = {} }: PortableStep, field: string): StepNode {
    this.#steps += 1;
    if (this.#steps > MOST_STEPS)
      throw refuse(
        "invalid_workflow",
        "workflow",
        `more than ${MOST_STEPS} steps`,
        `send at most ${MOST_STEPS} over HTTP; openEngine takes 10,000`,
      );
    const definition = this.#definitions[job];
    if (!definition) throw refuse("invalid_workflow", `${field}.job`, job, "send the index of a definition");
    return step(definition, payload as never, how);
  }
}

export const workflowCalls = {
  "workflows.start": call(
    "Start a workflow",
    z.tuple([
      options<PortableNode>(),
      options<Omit<WorkflowOptions, "tx" | "parent">>().optional(),
      z.array(options<PortableDefinition>()).min(1).max(MOST_STEPS),
    ]),
    async ({ engine }, node, how, definitions) => {
      const read = new NodeReader(definitions).read(node, "workflow");
      if (definitions.length > STEPS_PER_TURN) await turn();
      const { id, duplicate } = await engine.workflows.start(read, how);
      return { id, duplicate };
    },
  ),
  "workflows.view": call("Load a workflow", z.tuple([text]), ({ engine }, id) =>
    engine.workflows.get(id).view(),
  ),
  "workflows.steps": call(
    `Load jobs of a workflow, ${MOST_ROWS} at most`,
    z.tuple([text, options<{ from?: number; limit?: number }>()]),
    async ({ engine }, id, { limit = MOST_ROWS, ...page }) => {
      const asked = { ...page, limit: limit > MOST_ROWS ? MOST_ROWS : limit };
      // The engine refuses a wrong limit before anything is read by steps.
      if (!Number.isInteger(limit) || limit < 1) await stepRows(engine.store, id, asked);
      // Row by row: the rows of a page and their texts would be in memory together.
      const texts = await limited(async () => {
        const found: string[] = [];
        const { from = 0 } = asked;
        let size = 0;
        for (let at = 0; at < asked.limit; at += ROWS_AT_ONCE) {
          const step = { ...asked, from: from + at, limit: Math.min(ROWS_AT_ONCE, asked.limit - at) };
          const rows = await stepRows(engine.store, id, step);
          for (const row of rows) {
            const text = row ? JSON.stringify(jobView(visibleRow(row))) : "null";
            size += text.length;
            found.push(text);
          }
          if (rows.length < step.limit || size >= MOST_TEXT) break;
        }
        return found;
      });
      return new JsonText(`[${texts.join(",")}]`);
    },
  ),
  "workflows.list": call(
    "List workflows",
    z.tuple([options<WorkflowPage>().optional()]),
    ({ engine }, page) => engine.workflows.list(page),
  ),
  "workflows.cancel": call("Cancel a workflow", z.tuple([text]), ({ engine, by }, id) =>
    engine.workflows.cancel(id, by),
  ),
  "workflows.result": call(
    "Wait for the result of a workflow",
    z.tuple([text, wait]),
    ({ engine }, id, within) =>
      awaited(() => engine.workflows.get(id).visibleResult({ within: { milliseconds: within } })),
  ),
};
