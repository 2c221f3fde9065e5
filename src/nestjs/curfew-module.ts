import {
  type DynamicModule,
  type FactoryProvider,
  Module,
  type ModuleMetadata,
  type OnApplicationShutdown,
  type Provider,
} from "@nestjs/common";
import { DiscoveryModule, DiscoveryService } from "@nestjs/core";
import type { AnyDefinition } from "../core/job/job-definition.ts";
import type { AnySaga } from "../core/saga/saga.ts";
import type { Engine } from "../engine/engine.ts";
import { type OpenOptions, openEngine } from "../open.ts";
import { CurfewHealth } from "./curfew-health.ts";
import { CurfewWorkers, type ModuleWorkOptions } from "./curfew-workers.ts";
import { JobQueue } from "./job-queue.ts";
import { ENGINE, OPTIONS, queueToken } from "./tokens.ts";

/** What `openEngine` takes, and what this process works on. */
export interface CurfewModuleOptions extends OpenOptions {
  /** What `engine.work` takes, without processors; false: this process runs no jobs. Default: the defaults of `work`. */
  readonly work?: ModuleWorkOptions | false;
  /** Sagas that this process hosts. Default none. */
  readonly sagas?: readonly AnySaga[];
}

/** Options that other providers are needed for, such as a configuration service. */
export interface CurfewModuleAsyncOptions extends Pick<ModuleMetadata, "imports"> {
  readonly useFactory: (...injected: never[]) => CurfewModuleOptions | Promise<CurfewModuleOptions>;
  readonly inject?: FactoryProvider["inject"];
  /** Definitions whose queues can be injected: as in `forFeature`. */
  readonly jobs?: readonly AnyDefinition[];
}

/** Closes the engine after the HTTP server has stopped, so that the last requests can still enqueue. */
class EngineCloser implements OnApplicationShutdown {
  readonly #engine: Engine;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#engine.close();
  }
}

/** Global, so that `forFeature` of any module finds the engine. Nest stops global modules last. */
class CurfewEngineModule {}
Module({})(CurfewEngineModule);

const engineProviders: Provider[] = [
  {
    provide: ENGINE,
    useFactory: ({ work: _work, sagas: _sagas, ...options }: CurfewModuleOptions) => openEngine(options),
    inject: [OPTIONS],
  },
  { provide: EngineCloser, useFactory: (engine: Engine) => new EngineCloser(engine), inject: [ENGINE] },
];

const workProviders: Provider[] = [
  {
    provide: CurfewWorkers,
    useFactory: (engine: Engine, discovery: DiscoveryService, options: CurfewModuleOptions) =>
      new CurfewWorkers({ engine, discovery, work: options.work ?? {}, sagas: options.sagas ?? [] }),
    inject: [ENGINE, DiscoveryService, OPTIONS],
  },
  {
    provide: CurfewHealth,
    useFactory: (engine: Engine, workers: CurfewWorkers) => new CurfewHealth(engine, workers),
    inject: [ENGINE, CurfewWorkers],
  },
];

function queueProviders(definitions: readonly AnyDefinition[]): FactoryProvider[] {
  return definitions.map((definition) => ({
    provide: queueToken(definition),
    useFactory: (engine: Engine) => new JobQueue(engine, definition),
    inject: [ENGINE],
  }));
}

/**
 * Opens an engine with the application, starts a worker for providers with `@Processor`, and drains it on shutdown. List
 * it last in `imports`: Nest then starts it after the modules that its processors use, and stops it before them.
 */
// biome-ignore lint/complexity/noStaticOnlyClass: Nest knows a module by its class.
export class CurfewModule {
  static forRoot(options: CurfewModuleOptions & { readonly jobs?: readonly AnyDefinition[] }): DynamicModule {
    const { jobs, ...rest } = options;
    return rootModule({ provide: OPTIONS, useValue: rest }, jobs);
  }

  static forRootAsync({ useFactory, inject = [], imports, jobs }: CurfewModuleAsyncOptions): DynamicModule {
    return rootModule({ provide: OPTIONS, useFactory, inject }, jobs, imports);
  }

  /** Lets the module that imports this inject the queues of these definitions. */
  static forFeature(jobs: readonly AnyDefinition[]): DynamicModule {
    return featureModule(jobs);
  }
}
Module({})(CurfewModule);

// These stay outside of the class: the bundler renames a class that names itself, and Nest logs the names of modules.

function rootModule(
  options: Provider,
  jobs: readonly AnyDefinition[] = [],
  imports: NonNullable<ModuleMetadata["imports"]> = [],
): DynamicModule {
  const queues = queueProviders(jobs);
  const engine: DynamicModule = {
    module: CurfewEngineModule,
    global: true,
    imports,
    providers: [options, ...engineProviders, ...queues],
    exports: [OPTIONS, ENGINE, ...queues.map(({ provide }) => provide)],
  };
  return {
    module: CurfewModule,
    imports: [DiscoveryModule, engine],
    providers: workProviders,
    exports: [engine, CurfewWorkers, CurfewHealth],
  };
}

function featureModule(jobs: readonly AnyDefinition[]): DynamicModule {
  const providers = queueProviders(jobs);
  return { module: CurfewModule, providers, exports: providers.map(({ provide }) => provide) };
}
