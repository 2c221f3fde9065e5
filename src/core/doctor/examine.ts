import type { DoctorFacts } from "./doctor-facts.ts";
import { DOCTOR_RULES, type DoctorCode, type DoctorLevel, type Rule } from "./doctor-rules.ts";

/** A problem that the doctor found. */
export interface DoctorFinding {
  readonly code: DoctorCode;
  readonly level: DoctorLevel;
  readonly sentence: string;
  readonly action: string;
  /** The section of the documentation. */
  readonly link: string;
}

export interface Examination {
  /** Errors first, then warnings, then notes. */
  readonly findings: readonly DoctorFinding[];
  /** What was checked and is fine. */
  readonly passed: readonly { readonly code: DoctorCode; readonly text: string }[];
}

const GUIDE = "docs/guides/operations.md";
const LEVELS: readonly DoctorLevel[] = ["error", "warning", "note"];

/** Applies every rule to the facts. */
export function examine(facts: DoctorFacts): Examination {
  const findings: DoctorFinding[] = [];
  const passed: { code: DoctorCode; text: string }[] = [];
  for (const [name, rule] of Object.entries(DOCTOR_RULES) as [DoctorCode, Rule][]) {
    const answer = rule.look(facts);
    if (answer === null) continue;
    if (typeof answer === "string") passed.push({ code: name, text: answer });
    else {
      const { level = rule.level, sentence, action } = answer;
      findings.push({ code: name, level, sentence, action, link: `${GUIDE}#${name}` });
    }
  }
  findings.sort((a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level));
  return { findings, passed };
}
