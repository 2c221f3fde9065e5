/** What `curfew init` writes. Each file is small, typed, and runs as it is. */
import { OPTIONAL_PACKAGES } from "../../core/load-package.ts";

export interface StarterOptions {
  /** The name of the project, for its package.json. */
  readonly name: string;
  readonly version: string;
  readonly store: string;
  /** The test runner: Node's own, or Vitest if the project has it. */
  readonly runner: "node" | "vitest";
}

const jobs = () => `import { defineJob, processor, unchecked } from "curfew";

/** A job: its type, the shape of its payload, and how long it may take. */
export const sendMail = defineJob({
  type: "mail.send",
  queue: "mail",
  payload: unchecked<{ readonly to: string; readonly subject: string }>(),
  timeouts: { attempt: "30s", total: "1h" },
  retry: { attempts: 5 },
});

/** What runs it. Pass \`signal\` on to everything that waits: it aborts when the time is up. */
export const sendMailProcessor = processor(sendMail, async ({ payload, signal, log }) => {
  signal.throwIfAborted();
  log("sending", { to: payload.to });
  return { accepted: true };
});
`;

const worker = () => `import { sendMailProcessor } from "./jobs.ts";

/** What \`curfew work worker.ts\` runs. */
export default [sendMailProcessor];
`;

const web = ({ store }: StarterOptions) => `import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { openEngine } from "curfew";
import { sendMail } from "./jobs.ts";

const engine = await openEngine({ store: process.env.CURFEW_STORE ?? "${store}" });

/** GET /?to=you@example.com enqueues a mail; GET /jobs/<id> shows its state. */
const server = createServer(async (request, response) => {
  const url = new URL(request.url ?? "/", "http://localhost");
  const [, folder, id] = url.pathname.split("/");
  try {
    if (folder === "jobs" && id) {
      const job = await engine.load(id);
      response.writeHead(job ? 200 : 404).end(\`\${job?.state ?? "no such job"}\\n\`);
      return;
    }
    const to = url.searchParams.get("to") ?? "you@example.com";
    const job = await engine.enqueue(sendMail, { to, subject: "Hello" });
    response.writeHead(202).end(\`/jobs/\${job.id}\\n\`);
  } catch (error) {
    console.error(error);
    response.writeHead(500).end("failed\\n");
  }
});
server.listen(Number(process.env.PORT ?? 3000), () => {
  const { port } = server.address() as AddressInfo;
  console.log(\`http://localhost:\${port}/?to=you@example.com\`);
});

// A signal closes both, and the process ends when they are closed. A second signal does not cut that short.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => server.close());
engine.closeOnSignals();
`;

const BODY = `  await using test = await openTestEngine();
  test.engine.work({ processors: [sendMailProcessor] });
  const job = await test.engine.enqueue(sendMail, { to: "you@example.com", subject: "Hello" });
  await test.settle();`;

const HANGS = `  await using test = await openTestEngine();
  test.engine.work({ processors: [processor(sendMail, () => new Promise<never>(() => {}))] });
  const job = await test.engine.enqueue(sendMail, { to: "you@example.com", subject: "Hello" });
  await test.advance("2h");`;

const TESTS: Readonly<Record<StarterOptions["runner"], string>> = {
  node: `import assert from "node:assert/strict";
import { test as it } from "node:test";
import { processor } from "curfew";
import { openTestEngine } from "curfew/testing";
import { sendMail, sendMailProcessor } from "./jobs.ts";

it("sends a mail", async () => {
${BODY}
  assert.deepEqual(await job.result(), { accepted: true });
});

it("gives up after its total of one hour, in milliseconds of real time", async () => {
${HANGS}
  assert.equal((await job.load())?.state, "discarded");
});
`,
  vitest: `import { processor } from "curfew";
import { openTestEngine } from "curfew/testing";
import { expect, it } from "vitest";
import { sendMail, sendMailProcessor } from "./jobs.ts";

it("sends a mail", async () => {
${BODY}
  expect(await job.result()).toEqual({ accepted: true });
});

it("gives up after its total of one hour, in milliseconds of real time", async () => {
${HANGS}
  expect((await job.load())?.state).toBe("discarded");
});
`,
};

/** The packages that the starter needs, with their versions. */
export function starterPackages({ version, store }: Pick<StarterOptions, "version" | "store">) {
  const driver = store.startsWith("sqlite:") ? {} : { pg: OPTIONAL_PACKAGES.pg };
  return {
    dependencies: { curfew: `^${version}`, ...driver },
    devDependencies: { "@types/node": "^24.0.0", typescript: ">=5.9" },
  };
}

/** How the parts of the starter are run. */
export function starterCommands({ store, runner }: Pick<StarterOptions, "store" | "runner">) {
  return {
    worker: `curfew work worker.ts --watch --store ${store}`,
    web: "node --watch web.ts",
    test: runner === "vitest" ? "npx vitest run jobs.test.ts" : "node --test",
  };
}

function packageJson(options: StarterOptions): string {
  const content = {
    name: options.name,
    private: true,
    type: "module",
    scripts: starterCommands(options),
    ...starterPackages(options),
  };
  return `${JSON.stringify(content, null, 2)}\n`;
}

function tsconfig(): string {
  const compilerOptions = {
    target: "es2023",
    lib: ["es2023", "esnext.disposable"],
    module: "nodenext",
    types: ["node"],
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    erasableSyntaxOnly: true,
    verbatimModuleSyntax: true,
  };
  return `${JSON.stringify({ compilerOptions, include: ["*.ts"] }, null, 2)}\n`;
}

/** The files of the starter, by their paths in the project. */
export function starterFiles(options: StarterOptions): Readonly<Record<string, string>> {
  return {
    "jobs.ts": jobs(),
    "worker.ts": worker(),
    "web.ts": web(options),
    "jobs.test.ts": TESTS[options.runner],
    "package.json": packageJson(options),
    "tsconfig.json": tsconfig(),
  };
}
