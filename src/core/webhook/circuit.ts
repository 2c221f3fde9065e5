import { type BackoffOptions, backoff } from "../pace.ts";
import type { Instant } from "../time.ts";

/** An endpoint that failed too often in a row. It is called by one delivery at a time, after each pause. */
export interface OpenCircuit {
  readonly openedAt: Instant;
  /** No delivery calls the endpoint before this instant. */
  readonly until: Instant;
  /** Pauses so far; each is twice as long as the one before. */
  readonly pauses: number;
}

/** Calls in a row that fail in one process before the circuit opens for all. */
export const FAILURES_TO_OPEN = 10;
const PAUSES: BackoffOptions = { first: 30_000, factor: 2, most: 900_000 };
/** How much longer than its timeout a probe may take before another one is made. */
const PROBE_SLACK = 5_000;

/** The circuit after a pause begins. */
export function opened(before: OpenCircuit | null, now: Instant): OpenCircuit {
  const pauses = (before?.pauses ?? 0) + 1;
  return { openedAt: before?.openedAt ?? now, until: now + backoff(pauses, PAUSES), pauses };
}

/** The circuit while one delivery calls the endpoint to see whether it works again. */
export function probing(circuit: OpenCircuit, timeout: number, now: Instant): OpenCircuit {
  return { ...circuit, until: now + timeout + PROBE_SLACK };
}

export type CircuitState = "closed" | "open" | "half-open";

export function circuitState(circuit: OpenCircuit | null, now: Instant): CircuitState {
  if (!circuit) return "closed";
  return now < circuit.until ? "open" : "half-open";
}
