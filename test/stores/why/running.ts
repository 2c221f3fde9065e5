import { deaf, job, obedient, type Rig } from "./rig.ts";
import { sandboxedJob } from "./sandbox.ts";
import type { Situation } from "./situation.ts";

type Options = Parameters<typeof job>[1];

/** A job that a process of its own runs; another process is there to sweep. */
async function runBy(rig: Rig, run: () => unknown, options: Options = {}, runs = 1_000) {
  const [first, worker] = [await rig.open(), await rig.open()];
  const mail = job(run as never, options);
  const handle = await rig.of(worker.engine.enqueue(mail.definition));
  // A worker claims when it starts, so what follows happens at known times.
  const running = worker.work([mail.processor]);
  await rig.advance(runs);
  return { first, worker, running, handle };
}

const claimed: Situation[] = [
  {
    name: "a job that was claimed a moment ago",
    first: "claimed",
    make: async (rig) => (await runBy(rig, deaf, {}, 200)).handle,
  },
  {
    name: "a claim of a worker that died before it entered the handler",
    first: "claimed_by_silent_worker",
    says: /Its claim ends in [12]s/,
    async make(rig) {
      const { worker, handle } = await runBy(rig, deaf, {}, 200);
      worker.kill();
      await rig.advance(8_000);
      return handle;
    },
  },
  {
    name: "a claim that ran out while no engine sweeps",
    first: "claim_expired",
    async make(rig) {
      const { first, worker, handle } = await runBy(rig, deaf, {}, 200);
      worker.kill();
      first.hang("jobs.sweep");
      await rig.advance(12_000);
      return handle;
    },
  },
  {
    name: "a job whose sandbox loads",
    first: "sandbox_cold",
    async make(rig) {
      const { engine, work } = await rig.open();
      const resize = sandboxedJob("never");
      work([resize.processor]);
      const handle = await rig.of(engine.enqueue(resize.definition));
      await rig.advance(4_500);
      return handle;
    },
  },
  {
    name: "a job whose sandboxes are all busy",
    first: "sandbox_full",
    says: /all 1 sandboxes of image\.resize are busy/,
    async make(rig) {
      const { engine, work } = await rig.open();
      const resize = sandboxedJob("at-once");
      work([resize.processor]);
      await rig.of(engine.enqueue(resize.definition));
      await rig.advance(2_000);
      const handle = await rig.of(engine.enqueue(resize.definition));
      await rig.advance(3_000);
      return handle;
    },
  },
];

const SHORT = { timeouts: { attempt: "5s", grace: "10s" } } as const;

const running: Situation[] = [
  {
    name: "a job that runs",
    first: "running",
    also: ["then_retry"],
    says: /has run attempt 1 of 3 for 3s .+ and is signalled to stop in 29m/,
    make: async (rig) => (await runBy(rig, deaf, {}, 3_000)).handle,
  },
  {
    name: "the last attempt of a job",
    first: "running",
    also: ["then_end"],
    make: async (rig) => (await runBy(rig, deaf, { retry: { attempts: 1 } }, 3_000)).handle,
  },
  {
    name: "a job that nothing limits",
    first: "running",
    also: ["endless"],
    async make(rig) {
      const timeouts = { attempt: "none", heartbeat: "none" } as const;
      return (await runBy(rig, deaf, { timeouts }, 3_000)).handle;
    },
  },
  {
    name: "a job that a remote worker runs",
    first: "running",
    says: /Worker box-1 has run attempt 1/,
    async make(rig) {
      const { engine } = await rig.open();
      const handle = await rig.of(engine.enqueue(job(deaf).definition));
      await rig.of(engine.service.fetch({ queues: ["default"], count: 1, worker: "box-1", hears: true }));
      await rig.advance(3_000);
      return handle;
    },
  },
  {
    name: "a job whose worker died",
    first: "worker_silent",
    says: /has been silent for \d+s: .+ The job is taken back in 4\ds/,
    async make(rig) {
      const { worker, handle } = await runBy(rig, deaf);
      worker.kill();
      await rig.advance(15_000);
      return handle;
    },
  },
  {
    name: "a job without a heartbeat whose worker died",
    first: "worker_silent",
    says: /nothing takes the job back/,
    async make(rig) {
      const timeouts = { attempt: "none", heartbeat: "none" } as const;
      const { worker, handle } = await runBy(rig, deaf, { timeouts });
      worker.kill();
      await rig.advance(120_000);
      return handle;
    },
  },
  {
    name: "a handler that ignores its signal",
    first: "soft_signal_ignored",
    says: /ignored the signal for 3s\. It is ended by force in 6s/,
    async make(rig) {
      const { handle } = await runBy(rig, deaf, SHORT);
      await rig.advance(7_500);
      return handle;
    },
  },
  {
    name: "a handler that ignores its signal for ever",
    first: "soft_signal_ignored",
    says: /only a cancel ends it/,
    async make(rig) {
      const timeouts = { attempt: "5s", grace: "unbounded" } as const;
      const { handle } = await runBy(rig, deaf, { timeouts });
      await rig.advance(30_000);
      return handle;
    },
  },
  {
    name: "a job past its hard deadline while no engine sweeps",
    first: "verdict_due",
    also: ["worker_silent"],
    async make(rig) {
      const { first, worker, handle } = await runBy(rig, deaf, SHORT);
      worker.kill();
      first.hang("jobs.sweep");
      await rig.advance(30_000);
      return handle;
    },
  },
  {
    name: "a handler that does not beat",
    first: "handler_silent",
    async make(rig) {
      const { handle } = await runBy(rig, deaf, { timeouts: { heartbeat: "1m" } });
      await rig.advance(40_000);
      return handle;
    },
  },
  {
    name: "a job whose worker was blocked",
    first: "worker_blocked",
    says: /was blocked for [23]/,
    async make(rig) {
      const { handle } = await runBy(rig, deaf);
      rig.system.pause(3_000);
      await rig.advance(2_000);
      return handle;
    },
  },
  {
    name: "a job whose worker drains",
    first: "worker_stopping",
    async make(rig) {
      const { running: worker, handle } = await runBy(rig, obedient as never);
      void worker.close({ drain: "20s" });
      await rig.advance(2_000);
      return handle;
    },
  },
];

export const RUNNING: readonly Situation[] = [...claimed, ...running];
