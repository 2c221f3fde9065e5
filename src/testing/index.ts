export { type Comparison, compareStores } from "./compare-stores.ts";
export {
  type ConformanceCase,
  type ConformanceSection,
  type Runner,
  runCase,
} from "./conformance/kit.ts";
export {
  CONFORMANCE,
  type ConformanceOptions,
  storeConformance,
} from "./conformance/store-conformance.ts";
export type { OpenedStore } from "./conformance/test-bed.ts";
export type { OpenedTimeoutStore } from "./conformance/timeout-bed.ts";
export { type TimeoutConformanceOptions, timeoutConformance } from "./conformance/timeout-kit.ts";
export {
  type Fault,
  type FaultPlan,
  failFirst,
  failRandomly,
  faultyStore,
  type StoreCall,
} from "./faulty-store.ts";
export { createDeferred, createLatch, type Deferred, type Latch } from "./latch.ts";
export { createSimSystem, type SimSystem } from "./sim-clock.ts";
export { openTestEngine, type TestEngine, type TestEngineOptions } from "./test-engine.ts";
