import type { Violation } from "./checker.ts";
import type { Trace } from "./trace.ts";

/** Collects violations. It goes by true time. */
export class WorldChecker {
  readonly violations: Violation[] = [];
  protected readonly now: () => number;
  protected readonly trace: Trace;

  constructor(now: () => number, trace: Trace) {
    this.now = now;
    this.trace = trace;
  }

  report(rule: string, says: string): void {
    this.violations.push({ rule, says, at: this.now() });
    this.trace.add("CHECKER", `${rule}: ${says}`);
  }
}
