import { z } from "zod";
import type { DoctorFacts, StoreFacts, WorkerFacts, WorkFacts } from "../../core/doctor/doctor-facts.ts";
import { examine } from "../../core/doctor/examine.ts";
import { CurfewError } from "../../core/errors.ts";
import { isSilent, type WorkerReport } from "../../core/worker/worker-report.ts";
import type { Engine } from "../../engine/engine.ts";
import { listWorkers } from "../../engine/operations/worker-list.ts";
import { PAUSES } from "../../engine/queues/queues.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import type { System } from "../../ports/system.ts";
import { processFacts } from "../metrics/process-facts.ts";
import { json, type Route, type RouteContext, route } from "../route.ts";
import { healthReplySchema, instant } from "../wire/replies.ts";
import { checkStore } from "./system.ts";

const doctorReply = z
  .looseObject({
    checked_at: instant,
    is_ok: z.boolean().meta({ description: "No finding is an error." }),
    findings: z.array(
      z.looseObject({
        code: z.string(),
        level: z.enum(["error", "warning", "note"]),
        sentence: z.string(),
        action: z.string(),
        link: z.string(),
      }),
    ),
    passed: z.array(z.looseObject({ code: z.string(), text: z.string() })),
    facts: z.looseObject({}).meta({ description: "What was looked at; it may change with any version." }),
  })
  .meta({ id: "Doctor" });

const CLOCK_READS = 3;

/** Reads the store's clock; the quickest of a few reads says most about its distance. */
async function readClock({ store }: Engine, system: System) {
  let best = { took: Number.POSITIVE_INFINITY, offset: 0 };
  for (let reads = 0; reads < CLOCK_READS; reads++) {
    const sentAt = system.monotonic();
    const wall = system.wall();
    const at = await store.clock();
    const took = system.monotonic() - sentAt;
    // The store read its clock somewhere in the middle.
    if (took < best.took) best = { took, offset: at - (wall + took / 2) };
  }
  return best;
}

async function storeFacts(engine: Engine, system: System): Promise<StoreFacts> {
  const { store } = engine;
  const { took, offset } = await readClock(engine, system);
  return {
    name: store.capabilities.name,
    durable: store.capabilities.durable,
    answerTime: Math.round(took),
    clockOffset: Math.round(offset),
    diagnosis: (await store.diagnose?.()) ?? null,
  };
}

function workerFacts(worker: WorkerReport, now: number): WorkerFacts {
  const { id, isStopping, halted, problem, blocked, sandboxes } = worker;
  const broken = Object.entries(sandboxes).filter(([, sandbox]) => sandbox.problem !== null);
  return {
    id,
    isSilent: isSilent(worker, now),
    isStopping,
    halted,
    problem,
    blocked,
    brokenSandboxes: broken.map(([type]) => type),
  };
}

const MOST_COUNTED = 1_000;
const MOST_QUEUES_COUNTED = 100;
const END = { rank: Number.MAX_SAFE_INTEGER, id: "00000000-0000-0000-0000-000000000000" };

/** Counts the ready jobs of paused queues, in the first hundred of them. */
function pausedFacts({ store }: Engine, pauses: readonly { queue: string; since: number }[]) {
  return Promise.all(
    pauses.map(async ({ queue, since }, index) => ({
      queue,
      since,
      waiting: index < MOST_QUEUES_COUNTED ? await store.inspect.ahead({ queue }, END, MOST_COUNTED) : 0,
    })),
  );
}

async function workFacts(engine: Engine): Promise<WorkFacts> {
  const now = engine.now();
  const [{ workers }, unattended, maintenance, pauses] = await Promise.all([
    listWorkers(engine.store),
    engine.queues.unattended(),
    engine.maintenance.status(),
    PAUSES.all(engine.store),
  ]);
  return {
    now,
    workers: workers.map((worker) => workerFacts(worker, now)),
    unattended,
    paused: await pausedFacts(
      engine,
      [...pauses].map(([queue, { body }]) => ({ queue, since: body.at })),
    ),
    maintenanceSince: maintenance?.startedAt ?? null,
  };
}

const INSTANTS = new Set(["now", "at", "since", "maintenanceSince"]);

/** The facts in the names of the wire, with instants as texts. */
function wireNames(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(wireNames);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, each]) => [
    name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    typeof each === "number" && INSTANTS.has(name) ? instantText(each) : wireNames(each),
  ]);
  return Object.fromEntries(entries);
}

/** Looks at the store, the workers and this process. */
async function examineServer({ engine, service }: RouteContext) {
  const [store, work, here] = await Promise.all([
    storeFacts(engine, service.system),
    workFacts(engine),
    processFacts(process.cwd()),
  ]);
  const facts: DoctorFacts = { openProblem: null, process: here, store, work };
  return { facts, ...examine(facts) };
}

const doctor = route("GET", "/ojs/v1/admin/doctor", "operate", {
  scope: "server",
  tag: "admin",
  summary: "What is wrong with the store, the workers and this process, and what to do",
  reply: doctorReply,
  replies: { 200: "Findings, errors first, and what was checked and is fine" },
  async run(_call, context) {
    const { facts, findings, passed } = await examineServer(context);
    return json(200, {
      checked_at: instantText(context.engine.now()),
      is_ok: findings.every(({ level }) => level !== "error"),
      findings,
      passed,
      facts: wireNames(facts),
    });
  },
});

const count = z.int().min(0);

const observedHealthReply = healthReplySchema
  .extend({
    status: z.enum(["healthy", "degraded", "unhealthy"]).meta({
      description: "degraded: the doctor finds an error. unhealthy: the store does not answer.",
    }),
    checked_at: instant,
    workers: z.looseObject({ live: count, silent: count }).optional(),
    queues: z.looseObject({ unattended: count, paused: count }).optional(),
    findings: z
      .array(z.looseObject({ code: z.string(), level: z.enum(["error", "warning", "note"]) }))
      .optional()
      .meta({ description: "Errors first. /admin/doctor says what each means and what to do." }),
  })
  .meta({ id: "ObservedHealth" });

/** Counts and codes only, so that a monitor's key needs no right to operate. */
const observedHealth = route("GET", "/ojs/v1/admin/observability/health", "read", {
  scope: "server",
  tag: "admin",
  summary: "Whether the store, the workers and this process are well, for monitors",
  reply: observedHealthReply,
  replies: { 200: "healthy, or degraded with the findings", 503: "The store does not answer" },
  async run(_call, context) {
    const { engine, version, uptime } = context;
    const backend = await checkStore(context);
    const shared = { version, uptime_seconds: uptime(), checked_at: instantText(engine.now()), backend };
    const unhealthy = { ...shared, status: "unhealthy" } as const;
    if (backend.status === "unhealthy") return json(503, unhealthy);
    // The store answered, and may be gone a moment later.
    const examined = await examineServer(context).catch((error: unknown) => {
      if (error instanceof CurfewError && error.code === "store_failed") return null;
      throw error;
    });
    if (!examined) return json(503, { ...unhealthy, backend: { ...backend, status: "unhealthy" } });
    const { facts, findings } = examined;
    const { workers, unattended, paused } = facts.work as WorkFacts;
    const silent = workers.filter(({ isSilent }) => isSilent).length;
    return json(200, {
      status: findings.some(({ level }) => level === "error") ? "degraded" : "healthy",
      ...shared,
      workers: { live: workers.length - silent, silent },
      queues: { unattended: unattended.length, paused: paused.length },
      findings: findings.map(({ code, level }) => ({ code, level })),
    });
  },
});

export const adminDoctorRoutes: readonly Route[] = [doctor, observedHealth];
