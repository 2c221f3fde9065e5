import { realSystem } from "../../src/engine/runtime/real-system.ts";
import type { System } from "../../src/ports/system.ts";
import { machineClock } from "../../src/stores/sqlite/machine-clock.ts";

const machine = machineClock();

/** The system on which `openEngine` runs. */
export const productionSystem: System = machine ? { ...realSystem, machine } : realSystem;
