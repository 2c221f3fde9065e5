import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Node, parseSync, visitorKeys } from "oxc-parser";

const ROOT = join(import.meta.dirname, "..");

/**
 * Lines of the log by their text, and what to do. A text that no longer stands in the code is refused here. One that is
 * not named here is listed with "see the fields of the line".
 */
const LINES: Readonly<Record<string, string>> = {
  "this store is not durable: all jobs are lost when the process ends":
    "Use SQLite or PostgreSQL outside of tests and demos.",
  "cannot reach the store yet; trying again":
    "Nothing, while a database starts. After `openWithin`, 30 s by default, opening fails with the cause.",
  "the store failed": "See [store.error](guides/operations.md#storeerror).",
  "the worker claims no more jobs":
    "See [worker.unready](guides/operations.md#workerunready); `reason` is in the line.",
  "the worker claims jobs again": "Nothing.",
  "the event loop was blocked; this process checked no deadlines during that time":
    "See [worker.blocked](guides/operations.md#workerblocked).",
  "no processor for this job type; the job was released":
    "See [job.unknown_type](guides/operations.md#jobunknown_type).",
  "a worker takes this queue, and no definition of its processors names it; is the name right?":
    "Correct the name in `queues` of `work`. `didYouMean` names the nearest one.",
  "no worker of this process takes the queue of this definition; its jobs wait unless another process does":
    "Add the queue to `queues` of `work`, or ignore the line if another process takes it.",
  "jobs were enqueued into a queue that no live worker takes; start a worker for it, or correct its name":
    "See [queue_without_worker](guides/operations.md#queue_without_worker).",
  "a cleanup hook failed": "See [job.cleanup_failed](guides/operations.md#jobcleanup_failed).",
  "the sandbox was killed": "See [job.killed](guides/operations.md#jobkilled).",
  "the sandbox still runs: a thread inside a native call cannot be killed":
    'Use `kind: "process"`, which can always be killed.',
  "a sandbox is broken; its jobs are released until it loads":
    "See [sandbox.broken](guides/operations.md#sandboxbroken).",
  "a broken sandbox loads again": "Nothing.",
  "SIGUSR1 does not open the debugger of a process with sandboxes; see sandbox.debugSignal":
    "Set `debugSignal: true` if you need the debugger and trust the code in the sandboxes.",
  "a saga handler failed; its event is tried again": "See [saga.failed](guides/operations.md#sagafailed).",
  "cannot make the job of this cron; this instant is skipped: put the cron again with valid options":
    "See [cron.skipped](guides/operations.md#cronskipped).",
  "a tracer threw; its span is lost":
    "Correct the tracer that you passed as `tracing`. Jobs are not affected.",
  "an event listener threw; the other listeners still run":
    "Correct the listener that you passed to `engine.on`.",
  "onProgress of a bulk action threw": "Correct the callback. The action itself goes on.",
  "onEnd of createCalls threw": "Correct the callback. The call itself is not affected.",
  "a function ended after its deadline, and its result was dropped; end at the signal, or raise the limit":
    "Pass `signal` on inside the function.",
  "the key is sent unencrypted; use https for other machines": "Use an address that begins with `https://`.",
  "the server failed": "Look at the server's log and `/ready`. The worker tries again by itself.",
  "the key file cannot be read; the old keys stay valid":
    "Correct the file or its mode, and send SIGHUP again.",
  "the engine could not be closed":
    "The line has the cause. Jobs that it held are taken over when their lease ends.",
  "a deadline could not be applied; the sweep will":
    "Nothing, if it is rare: the sweep applies it. Look at the load of the store.",
  "a job could not be entered; it was released":
    "The line has the cause. The job runs again; no attempt is spent.",
  "a write could not be built; the sweep will end the job":
    "The line has the cause. Report it: it is a defect of curfew.",
  "a write was committed but not announced":
    "The line has the cause. The write counts; listeners of this process missed it.",
  "giving up on this write: the store accepts all others; the sweep will end the job at its deadline":
    "The line has the answer of the store. Look at the size and content of the result.",
  "the verdict could not be written; the sweep will end the attempt":
    "The line has the cause. The retry policy then decides.",
  "the verdict was refused by the rules; the sweep will end the attempt":
    "The line has the rule. Look at the result or error that the handler gave.",
  "report failed": "The line has the cause. Look at the store.",
  "report not accepted; the server will end the attempt when its heartbeat or deadline runs out":
    "The line has the server's answer. Make sure that the effect of the handler is idempotent.",
  "could not send the notes of an attempt":
    "Look at the network and the server's log. The verdict is sent all the same.",
  "could not send progress, a checkpoint or log lines": "Look at the network and the server's log.",
  "the server refused progress, a checkpoint or log lines":
    "The line has the server's answer: the note is too large, or the claim was lost.",
  "unreadable job in a fetch reply": "Update the client or the server: their versions differ too much.",
  "sandbox: loading its module failed":
    "The line has the error of the module. See [sandbox.broken](guides/operations.md#sandboxbroken).",
  "could not turn on event recording in the other engines on this store":
    "Look at the store; restart the server when it answers.",
  "could not send missed events to a reader":
    "The reader reconnects and goes on from its cursor. Look at the store if it repeats.",
  "could not send the current snapshot to readers": "Look at the store: the next snapshot follows.",
  "live events failed; all readers must reconnect": "Look at the store. Readers reconnect by themselves.",
};

/** Warnings that `explain` adds, which have no line in the log. */
const EXPLAINED: readonly (readonly [string, string])[] = [
  ["total is shorter than the backoffs", "Raise `total`, or lower `attempts` or the backoff."],
  ["attempt is longer than total and is cut to it", "Lower `attempt`, or raise `total`."],
  ["grace is longer than heartbeat", "Raise `heartbeat`, or let the handler beat while it cleans up."],
  [
    "heartbeat is named: the handler itself must call beat()",
    "Call `beat()`, or leave `heartbeat` out: the worker then beats.",
  ],
  ["total is over", "Nothing: the next sweep ends the job."],
  ["no live worker takes queue", "Start a worker for the queue, or correct its name."],
  ["the producer's definition says … that of worker … says …", "Deploy the same definition to both."],
];

/** The sections of the page of warnings: events, findings of the doctor, lines of the log, and warnings of `explain`. */
export function warningSections(): string[] {
  const runbook = readFileSync(join(ROOT, "docs/guides/operations.md"), "utf8");
  const [, events = "", findings = ""] = runbook.split(/^## Runbook: .*$/m);
  return [
    `## Events\n\nWith \`engine.on\`, in the journal and at \`/metrics\`.\n\n${runbookTable(events)}`,
    `## Findings of the doctor\n\nFrom \`curfew doctor\` and \`GET /ojs/v1/admin/doctor\`.\n\n${runbookTable(findings)}`,
    `## Lines of the log\n\nFrom the logger of the engine, the server and the client.\n\n${linesTable()}`,
    `## Warnings of explain\n\nFrom \`job.explain()\`.\n\n${table("warning", EXPLAINED)}`,
  ];
}

function runbookTable(text: string): string {
  const sections = [...text.matchAll(/^### (\S+)\n\n(.+?) \*\*Look at:\*\* .*?\*\*Do:\*\* (.+)$/gm)];
  if (sections.length === 0)
    throw new Error("docs/guides/operations.md has no runbook in the shape that this page needs");
  const rows = sections.map(([, code, means, does]) => {
    const anchor = (code as string).replaceAll(".", "");
    // Links inside the runbook are to its own headings.
    const cells = [means, does].map((cell) => (cell as string).replaceAll("](#", "](guides/operations.md#"));
    return `| [\`${code}\`](guides/operations.md#${anchor}) | ${cells.join(" | ")} |`;
  });
  return `| code | meaning | do |\n|---|---|---|\n${rows.join("\n")}\n`;
}

function linesTable(): string {
  const texts = globSync("src/**/*.ts", { cwd: ROOT })
    .filter((path) => !path.endsWith(".test.ts") && !path.startsWith("src/demo/"))
    .map((path) => readFileSync(join(ROOT, path), "utf8"));
  const all = texts.join("\n");
  const gone = Object.keys(LINES).filter((line) => !all.includes(line));
  if (gone.length > 0)
    throw new Error(`warnings-page.ts names lines that the code does not log: ${gone.join("; ")}`);
  const logged = new Set(texts.filter((text) => text.includes("ogger.")).flatMap(messagesOf));
  const others = [...logged].filter((line) => LINES[line] === undefined).sort();
  return table("line", [
    ...Object.entries(LINES),
    ...others.map((line): [string, string] => [line, "See the fields of the line, which have the cause."]),
  ]);
}

function table(title: string, rows: readonly (readonly [string, string])[]): string {
  return `| ${title} | do |\n|---|---|\n${rows.map(([line, does]) => `| ${line} | ${does} |`).join("\n")}\n`;
}

/** The fixed texts that a file gives to `logger.warn` and `logger.error`. */
function messagesOf(text: string): string[] {
  const found: string[] = [];
  const visit = (node: Node): void => {
    if (node.type === "CallExpression" && node.callee.type === "MemberExpression") {
      const callee = text.slice(node.callee.start, node.callee.end);
      if (/ogger\.(?:warn|error)$/.test(callee) && node.arguments[1])
        found.push(...textsOf(node.arguments[1]));
    }
    for (const key of visitorKeys[node.type] ?? []) {
      const child: unknown = node[key as keyof typeof node];
      for (const each of Array.isArray(child) ? child : [child]) if (each) visit(each as Node);
    }
  };
  visit(parseSync("file.ts", text).program);
  return found;
}

function textsOf(node: Node): string[] {
  if (node.type === "Literal" && typeof node.value === "string") return [node.value];
  return node.type === "ConditionalExpression"
    ? [...textsOf(node.consequent), ...textsOf(node.alternate)]
    : [];
}
