import type { OnApplicationBootstrap, OnModuleDestroy } from "@nestjs/common";
import type { DiscoveryService } from "@nestjs/core";
import { CurfewError } from "../core/errors.ts";
import type { AnySaga } from "../core/saga/saga.ts";
import { type Processor, processor } from "../engine/attempt/processor.ts";
import type { Engine } from "../engine/engine.ts";
import type { SagaHost } from "../engine/sagas/sagas.ts";
import { checkQueues, type WorkOptions } from "../engine/worker/work-options.ts";
import type { Worker } from "../engine/worker/worker.ts";
import { handlerOf, type Mark, marksOf, marksOfPrototype } from "./processor-decorator.ts";

/** What `engine.work` takes. Processors of providers are found by their decorator; these are added to them. */
export interface ModuleWorkOptions extends Omit<WorkOptions, "processors"> {
  readonly processors?: readonly Processor[];
}

interface WorkersDeps {
  readonly engine: Engine;
  readonly discovery: DiscoveryService;
  readonly work: ModuleWorkOptions | false;
  readonly sagas: readonly AnySaga[];
}

interface Found {
  readonly processor: Processor;
  readonly mark: Mark;
}

/** Starts a worker for all decorated providers when the application has started, and drains it when it stops. */
export class CurfewWorkers implements OnApplicationBootstrap, OnModuleDestroy {
  readonly #deps: WorkersDeps;
  #worker: Worker | undefined;
  #host: SagaHost | undefined;

  constructor(deps: WorkersDeps) {
    this.#deps = deps;
  }

  /** Undefined before the start, and in an application without processors. */
  get worker(): Worker | undefined {
    return this.#worker;
  }

  onApplicationBootstrap(): void {
    const { engine, work, sagas } = this.#deps;
    if (sagas.length > 0) this.#host = engine.host(sagas);
    if (work === false) return;
    const { processors: more = [], ...options } = work;
    const found = this.#find();
    const processors = [...found.map((one) => one.processor), ...more];
    if (processors.length === 0) return;
    this.#worker = engine.work({
      ...options,
      processors,
      queues: queuesOf(options.queues, found, processors),
    });
  }

  /** Runs before the HTTP server closes: a worker that stops takes no more jobs while requests get their replies. */
  async onModuleDestroy(): Promise<void> {
    await Promise.all([this.#worker?.close(), this.#host?.close()]);
  }

  #find(): Found[] {
    const found: Found[] = [];
    const seen = new Set<object>();
    const { discovery } = this.#deps;
    for (const wrapper of [...discovery.getProviders(), ...discovery.getControllers()]) {
      const { instance, metatype } = wrapper;
      if (!wrapper.isDependencyTreeStatic()) refuseScoped(metatype);
      else if (typeof instance === "object" && instance !== null && !seen.has(instance)) {
        seen.add(instance);
        for (const mark of marksOf(instance))
          found.push({ mark, processor: processor(mark.definition, handlerOf(instance, mark)) });
      }
    }
    return found;
  }
}

/** A job belongs to no request, so a provider that exists once per request cannot run it. */
function refuseScoped(metatype: unknown): void {
  if (typeof metatype !== "function" || typeof metatype.prototype !== "object" || !metatype.prototype) return;
  const [mark] = marksOfPrototype(metatype.prototype);
  if (!mark) return;
  throw new CurfewError(
    "invalid_option",
    `Processor(${mark.definition.type}): ${metatype.name} is request-scoped or transient; make it a singleton, and what ` +
      "it injects too",
    { field: "Processor" },
  );
}

/** The queues of the worker: `concurrency` of a decorator wins over `work.queues`. */
function queuesOf(
  given: WorkOptions["queues"],
  found: readonly Found[],
  processors: readonly Processor[],
): NonNullable<WorkOptions["queues"]> {
  const queues = new Map(checkQueues(given, processors));
  const named = new Map<string, number>();
  for (const { definition, options } of found.map(({ mark }) => mark)) {
    const { concurrency } = options;
    if (concurrency === undefined) continue;
    const other = named.get(definition.queue);
    if (other !== undefined && other !== concurrency)
      throw new CurfewError(
        "invalid_option",
        `Processor(${definition.type}).concurrency: ${concurrency} differs from ${other}, which another processor of ` +
          `queue ${definition.queue} names; name one number per queue`,
        { field: "Processor.concurrency" },
      );
    named.set(definition.queue, concurrency);
    queues.set(definition.queue, concurrency);
  }
  return Object.fromEntries([...queues].map(([queue, concurrency]) => [queue, { concurrency }]));
}
