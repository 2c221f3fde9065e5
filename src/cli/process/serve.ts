import { refuse } from "../../core/errors.ts";
import { type Duration, parseDuration } from "../../core/time.ts";
import type { Demo } from "../../demo/demo.ts";
import { hidePassword, openEngine } from "../../open.ts";
import { Keyring } from "../../server/access/auth.ts";
import { readKeyFile } from "../../server/access/key-file.ts";
import { createServer } from "../../server/app.ts";
import { type Listening, listen } from "../../server/listen.ts";
import { openTelemetry } from "../../tracing.ts";
import type { LogLevel } from "../output/log-levels.ts";
import { createLogOutput, type LogOutput } from "../output/log-output.ts";
import { dim, paint } from "../output/paint.ts";
import { refuseBarePath } from "../target/target.ts";
import { loadWorkers, type WorkOptions } from "./load-workers.ts";
import { logEvents } from "./log-events.ts";
import { onStop } from "./on-stop.ts";

export interface ServeOptions {
  readonly store: string;
  readonly host: string;
  readonly port: number;
  readonly keys?: string;
  readonly workers?: string;
  readonly demo?: boolean;
  readonly cors?: readonly string[];
  readonly rate?: number;
  readonly webhooks?: boolean;
  readonly webhooksAllow?: readonly string[];
  readonly drain: string;
  readonly conformance?: boolean;
  readonly traces?: boolean;
  readonly json?: boolean;
  readonly logLevel: LogLevel;
  readonly version: string;
}

const DEMO_STORES = "the demo runs only on an embedded store: sqlite:<file> or memory:";

/** Serves until SIGTERM or SIGINT. Then running jobs may finish within `drain`. */
export async function serve(options: ServeOptions): Promise<void> {
  parseDuration(options.drain, "drain", { zero: true });
  refuseBarePath(options.store);
  if (options.demo && !/^(?:sqlite:|memory:)/.test(options.store))
    throw refuse("invalid_option", "demo: store", hidePassword(options.store), DEMO_STORES);
  const output = createLogOutput(options);
  const stopped = onStop(output);
  const keys = options.keys === undefined ? undefined : await readKeyFile(options.keys);
  const engine = await openEngine({
    store: options.store,
    logger: output.logger,
    ...(options.traces && { tracing: openTelemetry() }),
    ...(options.webhooks !== false && { webhooks: { allow: options.webhooksAllow ?? [] } }),
  });
  const drain = options.drain as Duration;
  let listening: Listening | undefined;
  let worker: ReturnType<typeof engine.work> | undefined;
  let demo: Demo | undefined;
  try {
    logEvents(engine, output.logger, options.logLevel === "debug");
    const keyring = keys && new Keyring(keys, { now: () => engine.now() });
    const work =
      options.workers === undefined ? undefined : await loadWorkers("--workers", options.workers, engine);
    const shop = options.demo ? await import("../../demo/demo.ts") : undefined;
    // Before anything is served: a store that has other jobs must not be touched.
    demo = await shop?.startDemo(engine, options.store, output.logger);
    const server = createServer(engine, {
      logger: output.logger,
      ...(keyring && { keys: keyring }),
      ...(options.cors && { cors: options.cors }),
      ...(options.rate !== undefined && { limits: { rate: options.rate } }),
      ...(options.conformance && { conformance: true }),
      ...(shop && { dashboard: { notice: shop.DEMO_NOTICE } }),
    });
    listening = await listen(server, { host: options.host, port: options.port, logger: output.logger });
    worker = work && engine.work(work);
    if (keyring && options.keys !== undefined) rereadOnHangUp(keyring, options.keys, output);
    greet(output, options, listening, work);
    await stopped;
  } finally {
    // Stop claiming jobs while open requests get their replies.
    await Promise.all([listening?.close(), worker?.close({ drain }), demo?.close()]);
    await engine.close({ drain });
  }
  output.say("Stopped.", {}, "stopped");
}

/** SIGHUP reads the key file again, so keys change without a restart. An invalid file changes nothing. */
function rereadOnHangUp(keyring: Keyring, file: string, { logger }: LogOutput): void {
  process.on("SIGHUP", () => {
    readKeyFile(file)
      .then((keys) => {
        keyring.replace(keys);
        logger.info({ file, keys: keyring.size }, "the key file was read again");
      })
      .catch((error: unknown) =>
        logger.error({ error: String(error) }, "the key file cannot be read; the old keys stay valid"),
      );
  });
}

function greet(
  output: LogOutput,
  options: ServeOptions,
  { url }: Listening,
  work: WorkOptions | undefined,
): void {
  const store = hidePassword(options.store);
  const types = work?.processors.map(({ definition }) => definition.type) ?? [];
  const line = (name: string, text: string) => `  ${dim(name.padEnd(8))} ${text}`;
  // The demo works on this type, so the job runs; a job of another type would make the store no longer the demo's.
  const job = options.demo
    ? '{"type":"mail.send","queue":"mail","args":[{"to":"you@example.org"}]}'
    : '{"type":"hello","args":[]}';
  const key = options.keys === undefined ? "" : " -H 'Authorization: Bearer <key>'";
  const lines = [
    `${paint("bold", `curfew ${options.version}`)} serves Open Job Spec on ${paint("cyan", url)}`,
    line("open", `${url}/ in a browser: the dashboard`),
    line("store", store),
    line("keys", options.keys ?? "none: only callers on this machine are accepted"),
    ...(options.demo ? [line("demo", "a shop that keeps itself busy; the overview says where to look")] : []),
    ...(types.length > 0 ? [line("works on", types.join(", "))] : []),
    ...(options.conformance ? [line("hooks", paint("yellow", "of the conformance suite are on"))] : []),
    line("try", `curl ${url}/ojs/v1/jobs${key} -H 'Content-Type: application/json' -d '${job}'`),
    line("stop", "Ctrl-C"),
  ];
  const fields = { url, store, version: options.version, keys: options.keys !== undefined, types };
  output.say(lines.join("\n"), fields, "listening");
}
