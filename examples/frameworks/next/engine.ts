import { type Engine, openEngine } from "curfew";

/** Next bundles each route on its own and reloads modules in development, so the one engine is kept on `globalThis`. */
const kept = globalThis as { curfewEngine?: Promise<Engine> };

export function getEngine(): Promise<Engine> {
  kept.curfewEngine ??= openEngine({ store: process.env.STORE ?? "sqlite:shop.db" });
  return kept.curfewEngine;
}
