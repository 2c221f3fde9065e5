import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { CurfewError, refuse } from "../../core/errors.ts";
import { type AnyDefinition, isDefinition } from "../../core/job/job-definition.ts";
import type { openEngine } from "../../open.ts";

type Engine = Awaited<ReturnType<typeof openEngine>>;
export type WorkOptions = Parameters<Engine["work"]>[0];

const EXPORT =
  "export default [processor(…), …], the options of engine.work(), or a function (engine) that returns one of these";

/**
 * Loads a module of workers. Its default export is a list of processors, the options of `engine.work()`, or a function
 * that gets the engine and returns one of these. `option` names the argument in errors.
 */
export async function loadWorkers(option: string, module: string, engine: Engine): Promise<WorkOptions> {
  const exported = await load(option, module);
  const given: unknown =
    typeof exported.default === "function" ? await exported.default(engine) : exported.default;
  const options = (Array.isArray(given) ? { processors: given } : given) as WorkOptions | null | undefined;
  const field = `${option}: the default export of ${module}`;
  if (options === undefined) throw new CurfewError("invalid_option", missing(option, module, exported));
  if (typeof options !== "object" || options === null) throw refuse("invalid_option", field, given, EXPORT);
  const { processors } = options;
  if (!Array.isArray(processors) || processors.length === 0)
    throw new CurfewError("invalid_option", `${field} has no processors; ${EXPORT}`);
  const wrong = processors.findIndex((each) => !isProcessor(each));
  if (wrong >= 0)
    throw refuse("invalid_option", `${field}, processor ${wrong + 1}`, processors[wrong], PROCESSOR);
  return options;
}

/** The definitions that modules export: by themselves, in processors, or in lists of either. One per type. */
export async function loadDefinitions(option: string, modules: readonly string[]): Promise<AnyDefinition[]> {
  const found = new Map<string, AnyDefinition>();
  for (const module of modules) {
    const before = found.size;
    for (const value of Object.values(await load(option, module)).flat())
      for (const definition of [value, (value as { readonly definition?: unknown } | null)?.definition])
        if (isDefinition(definition)) found.set(definition.type, definition);
    if (found.size === before)
      throw new CurfewError(
        "invalid_option",
        `${option}: ${module} exports no definition; export what defineJob() returned`,
      );
  }
  return [...found.values()];
}

const PROCESSOR = "use what processor() or sandboxed() returned";

type Exports = Readonly<Record<string, unknown>>;

async function load(option: string, module: string): Promise<Exports> {
  const file = resolve(module);
  if (!existsSync(file))
    throw new CurfewError("invalid_option", `${option}: there is no file ${file}; check the path`);
  try {
    return (await import(pathToFileURL(file).href)) as Exports;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const fix = FIXES[String((error as { code?: unknown } | null)?.code)];
    const text = `${option}: ${module} cannot be loaded: ${why}${fix === undefined ? "" : `; ${fix}`}`;
    throw new CurfewError("invalid_option", text, { cause: error });
  }
}

const FIXES: Readonly<Record<string, string>> = {
  ERR_UNKNOWN_FILE_EXTENSION:
    "Node runs TypeScript from version 22.18 on: use a newer Node, or compile the module",
  ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX:
    "Node only strips types: avoid enums, namespaces and parameter properties, or compile the module",
};

/** People often export processors by name and forget the default export. */
function missing(option: string, module: string, exported: Exports): string {
  const named = Object.keys(exported).filter((name) => isProcessor(exported[name]));
  const says = `${option}: ${module} has no default export`;
  if (named.length === 0) return `${says}; ${EXPORT}`;
  return `${says}; it exports processors by name: add "export default [${named.join(", ")}]"`;
}

function isProcessor(value: unknown): boolean {
  const type = (value as { readonly definition?: { readonly type?: unknown } } | null | undefined)?.definition
    ?.type;
  return typeof type === "string";
}
