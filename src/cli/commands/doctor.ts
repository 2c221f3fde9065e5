import type { Command } from "commander";
import { withPage, withTarget } from "../declare.ts";
import { CommandFailed, type Exit } from "../exit.ts";
import type { Output } from "../output/output.ts";
import { dim, type Format, paint, printable } from "../output/paint.ts";
import { wrapText } from "../output/wrap.ts";
import { act } from "../run-command.ts";
import { offered } from "../target/not-found.ts";
import { type Fields, MissingFile, OldSchema } from "../target/target.ts";

interface DoctorOptions {
  readonly strict?: boolean;
}

export function register(command: Command): void {
  command.description("Look for problems of the store, the workers and this machine, and say what to do.");
  withTarget(command).option("--strict", "end with 1 for warnings, too");
  withPage(command, {
    examples: [
      ["doctor", "look at the store or server of the environment"],
      ["doctor --store sqlite:jobs.db", "look at one store"],
      ["doctor --strict --json", "for a check before a deployment"],
    ],
    json: '{"is_ok","findings":[{"code","level","sentence","action","link"}],"passed":[{"code","text"}],"checked_at"?,"facts"?}',
    more: [
      "It ends with 0 if there is no error, 1 if there is one, and 3 if the store or server cannot be reached. Against a",
      "server it looks at the process of the server. It writes nothing.",
    ].join("\n"),
  });
  act<DoctorOptions>(
    command,
    async ({ target, output }, options) => {
      const asked = offered(target, "the doctor", () => target.get("/ojs/v1/admin/doctor"));
      const report = await asked.catch((error: unknown) => {
        if (!(error instanceof CommandFailed) || error.exit !== "unreachable") throw error;
        return unreachable(error);
      });
      say(output, report, target.name, options.strict === true);
    },
    async ({ output }, error, options) => {
      say(output, await unreachable(error), "this machine", options.strict === true);
    },
  );
}

/** The store or server does not answer: what can be said from here. */
async function unreachable(error: CommandFailed): Promise<Fields> {
  const [{ examine }, { processFacts }] = await Promise.all([
    import("../../core/doctor/examine.ts"),
    import("../../server/metrics/process-facts.ts"),
  ]);
  const here = await processFacts(process.cwd());
  const missingFile = error instanceof MissingFile ? error.path : undefined;
  const oldSchema = error instanceof OldSchema ? error.versions : undefined;
  const facts = {
    openProblem: error.message,
    missingFile,
    oldSchema,
    process: here,
    store: null,
    work: null,
  };
  return { is_ok: false, ...examine(facts) };
}

const COLOURS: Readonly<Record<string, Format>> = { error: "red", warning: "yellow", note: "cyan" };

function say(output: Output, report: Fields, name: string, isStrict: boolean): void {
  const findings = report.findings as readonly Fields[];
  output.answer(report, () => reportText(report, name));
  const isUnreachable = findings.some(({ code }) => code === "store_unreachable");
  const bad = isStrict ? ["error", "warning"] : ["error"];
  const exit: Exit | undefined = isUnreachable
    ? "unreachable"
    : findings.some(({ level }) => bad.includes(String(level)))
      ? "failed"
      : undefined;
  if (exit !== undefined) throw new CommandFailed(exit, "");
}

function reportText({ findings, passed }: Fields, name: string): string {
  const found = findings as readonly Fields[];
  const fine = (passed as readonly Fields[]).map(
    ({ text }) => `${paint("green", "✓")} ${dim(printable(String(text)))}`,
  );
  const problems = found.map(({ level, code, sentence, action }) => {
    const head = `${paint(COLOURS[String(level)] ?? "reset", `${MARKS[String(level)]} ${level}`)} ${dim(`[${code}]`)}`;
    return [
      head,
      wrapText(printable(String(sentence)), "  "),
      wrapText(`→ ${printable(String(action))}`, "  ", "    "),
    ].join("\n");
  });
  const counts = ["error", "warning", "note"].flatMap((level) => {
    const count = found.filter((each) => each.level === level).length;
    return count === 0 ? [] : [`${count} ${level}${count === 1 ? "" : "s"}`];
  });
  const summary = counts.length === 0 ? `Nothing is wrong with ${name}.` : `${counts.join(", ")} on ${name}.`;
  return [...fine, ...(problems.length === 0 ? [] : ["", problems.join("\n\n")]), "", summary].join("\n");
}

const MARKS: Readonly<Record<string, string>> = { error: "✗", warning: "!", note: "·" };
