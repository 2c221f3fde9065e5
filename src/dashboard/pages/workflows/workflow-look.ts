import type { Workflow } from "../../../ojs/replies/wire-replies.ts";

export const WORKFLOW_LOOKS = {
  running: { mark: "running", tone: "run", word: "Running" },
  completed: { mark: "done", tone: "done", word: "Completed" },
  failed: { mark: "discarded", tone: "force", word: "Failed" },
  cancelled: { mark: "cancelled", tone: "off", word: "Cancelled" },
} as const;

export const KINDS = {
  step: "one step",
  chain: "chain: one after the other",
  group: "group: all at once",
  batch: "batch: all at once, then callbacks",
  graph: "graph: each after the steps that it waits for",
} as const;

export const nameOf = ({ name, id }: Pick<Workflow, "name" | "id">): string => name ?? id;
