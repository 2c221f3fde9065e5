import { CurfewError, refuse, refuseUnknownKeys } from "./core/errors.ts";
import type { RungOptions } from "./core/job/policy.ts";
import { Engine } from "./engine/engine.ts";
import { realSystem } from "./engine/system.ts";
import type { Logger } from "./ports/log.ts";
import type { Store } from "./ports/store.ts";
import type { System } from "./ports/system.ts";
import { createMemoryStore } from "./stores/memory/memory-store.ts";
import { openPostgresStore } from "./stores/postgres/postgres-store.ts";

export interface OpenOptions extends RungOptions {
  /** `"memory:"`, `"postgres://…"`, or a store of one's own. */
  readonly store: string | Store;
  readonly logger?: Logger;
  /** Clock, timers and randomness; tests hand in virtual ones. */
  readonly system?: System;
  /** The most bytes of a payload, result, checkpoint or progress note. Default 1 MB. */
  readonly documentLimit?: number;
}

const KEYS = ["store", "logger", "system", "documentLimit", "timeouts", "retry", "retention"] as const;

/** Opens an engine on a store. Everything an engine needs is put together here and nowhere else. */
export async function openEngine(options: OpenOptions): Promise<Engine> {
  refuseUnknownKeys(options, "", KEYS);
  refuseOldNode(process.versions.node);
  const system = options.system ?? realSystem;
  const store = typeof options.store === "string" ? await openStore(options.store, system) : options.store;
  if (typeof store !== "object" || store === null) throw unknownStore(options.store);
  try {
    return await Engine.open({ ...options, store, system });
  } catch (error) {
    if (typeof options.store === "string") await store.close();
    throw error;
  }
}

async function openStore(address: string, system: System): Promise<Store> {
  if (address === "memory:") return createMemoryStore({ clock: monotonicWall(system) });
  if (/^postgres(ql)?:\/\//.test(address)) return openPostgresStore({ connection: address, system });
  if (/^rediss?:\/\//.test(address))
    throw refuse(
      "unknown_store",
      "store",
      hidePassword(address),
      "Redis is not supported yet: use sqlite: or postgres://",
    );
  throw unknownStore(address);
}

/** The wall clock at the opening plus monotonic time: a store in this process must not jump with the machine's clock. */
function monotonicWall(system: System): () => number {
  const offset = system.wall() - system.monotonic();
  return () => Math.floor(system.monotonic() + offset);
}

function unknownStore(address: unknown): CurfewError {
  const shown = typeof address === "string" ? hidePassword(address) : address;
  return refuse("unknown_store", "store", shown, 'write "memory:", "sqlite:path" or "postgres://…"');
}

function hidePassword(address: string): string {
  return address.replace(/\/\/[^@/]*@/, "//***@");
}

const OLDEST = [22, 14] as const;

export function refuseOldNode(version: string): void {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return;
  throw new CurfewError(
    "unsupported_node",
    `curfew needs Node ${OLDEST.join(".")} or newer; this is Node ${version}`,
  );
}
