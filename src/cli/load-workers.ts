import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { CurfewError, refuse } from "../core/errors.ts";
import type { openEngine } from "../open.ts";

type Engine = Awaited<ReturnType<typeof openEngine>>;
export type WorkOptions = Parameters<Engine["work"]>[0];

const CONCURRENCY = 10;

/** What a module of workers exports by default: processors, or a function that gives the options of a worker. */
export async function loadWorkers(module: string, engine: Engine): Promise<WorkOptions> {
  const exported = await load(module);
  const given: unknown = typeof exported === "function" ? await exported(engine) : exported;
  if (Array.isArray(given)) {
    const processors = given as WorkOptions["processors"];
    return { processors, queues: queuesOf(processors) };
  }
  if (typeof given === "object" && given !== null) return given as WorkOptions;
  const fix = "export processors by default, or a function that gives the options of engine.work()";
  throw refuse("invalid_option", `workers: the default export of ${module}`, given, fix);
}

async function load(module: string): Promise<unknown> {
  try {
    const loaded = (await import(pathToFileURL(resolve(module)).href)) as { default?: unknown };
    return loaded.default;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new CurfewError("invalid_option", `workers: ${module} cannot be loaded: ${why}`, { cause: error });
  }
}

/** A list says nothing of queues, so those that its definitions name are worked on. */
function queuesOf(processors: WorkOptions["processors"]): NonNullable<WorkOptions["queues"]> {
  const names = processors.map((processor) => processor?.definition?.queue ?? "default");
  return Object.fromEntries(names.map((name) => [name, { concurrency: CONCURRENCY }]));
}
