export { CurfewHealth, type HealthResult } from "./curfew-health.ts";
export { CurfewModule, type CurfewModuleAsyncOptions, type CurfewModuleOptions } from "./curfew-module.ts";
export { CurfewWorkers, type ModuleWorkOptions } from "./curfew-workers.ts";
export { JobQueue } from "./job-queue.ts";
export { Processor, type ProcessorOptions } from "./processor-decorator.ts";
export { ENGINE, InjectEngine, InjectQueue, queueToken } from "./tokens.ts";
