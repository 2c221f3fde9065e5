import { chain, step } from "../../../src/index.ts";
import { SandboxKilled } from "../../../src/ports/sandbox.ts";
import { deaf, job, obedient, type Rig } from "./rig.ts";
import type { Situation } from "./situation.ts";

type Options = Parameters<typeof job>[1];

const fails = () => {
  throw new Error("no route to host");
};

/** A job that a worker has run for this long. */
async function ran(rig: Rig, run: unknown, options: Options = {}, lasts = 3_000) {
  const { engine, work } = await rig.open();
  const mail = job(run as never, options);
  work([mail.processor]);
  const handle = await rig.of(engine.enqueue(mail.definition));
  await rig.advance(lasts);
  return { engine, mail, handle };
}

const ok: Situation[] = [
  {
    name: "a job that completed",
    first: "completed",
    make: async (rig) => (await ran(rig, () => {})).handle,
  },
  {
    name: "a job that completed after its signal",
    first: "completed_late",
    async make(rig) {
      const slow = () => new Promise<void>((resolve) => void rig.system.after(4_000, resolve));
      return (await ran(rig, slow, { timeouts: { attempt: "2s" } }, 6_000)).handle;
    },
  },
];

const cancelled: Situation[] = [
  {
    name: "a job that an operator cancelled",
    first: "cancelled",
    async make(rig) {
      const { engine, handle } = await ran(rig, obedient);
      await rig.of(engine.cancel(handle.id));
      await rig.advance(1_000);
      return handle;
    },
  },
  {
    name: "a job whose unique key a newer one took",
    first: "replaced",
    async make(rig) {
      const { engine } = await rig.open();
      const { definition } = job(deaf, { unique: { onConflict: "replace" } });
      const handle = await rig.of(engine.enqueue(definition));
      await rig.of(engine.enqueue(definition));
      return handle;
    },
  },
  {
    name: "a job whose unique key a newer one took within a period",
    first: "replaced",
    async make(rig) {
      const { engine } = await rig.open();
      const { definition } = job(deaf, { unique: { period: "1h", onConflict: "replace" } });
      const handle = await rig.of(engine.enqueue(definition));
      await rig.of(engine.enqueue(definition));
      return handle;
    },
  },
  {
    name: "a step behind one that failed",
    first: "workflow_halted",
    async make(rig) {
      const { engine, work } = await rig.open();
      const first = job(fails, { type: "first.step", retry: { attempts: 1 } });
      const second = job(deaf, { type: "second.step" });
      work([first.processor, second.processor]);
      await rig.of(engine.workflows.start(chain([step(first.definition), step(second.definition)])));
      await rig.advance(3_000);
      const { jobs } = await rig.ask((asking) => asking.find({ type: "second.step" }));
      return { id: jobs[0]?.id as string };
    },
  },
];

const byTime: Situation[] = [
  {
    name: "a job that was not started in time",
    first: "wait_expired",
    says: /not started within 60s \(wait, set by definition\)/,
    async make(rig) {
      const { engine } = await rig.open();
      const { definition } = job(deaf, { timeouts: { wait: "1m" } });
      const handle = await rig.of(engine.enqueue(definition));
      await rig.advance(63_000);
      return handle;
    },
  },
  {
    name: "a waiting job whose total ran out",
    first: "total_expired",
    says: /did not end within 60s \(total, set by enqueue\)/,
    async make(rig) {
      const { engine } = await rig.open();
      const timeouts = { total: "1m" } as const;
      const handle = await rig.of(engine.enqueue(job(deaf).definition, null, { timeouts }));
      await rig.advance(63_000);
      return handle;
    },
  },
  {
    name: "a running job whose total ran out",
    first: "total_expired",
    async make(rig) {
      const timeouts = { attempt: "5s", total: "5s", grace: "1s" } as const;
      return (await ran(rig, obedient, { timeouts }, 9_000)).handle;
    },
  },
  {
    name: "a retry that would not have fitted",
    first: "retry_refused",
    says: /Attempt 1 failed \(no route to host\), and no further attempt would have fitted/,
    async make(rig) {
      const timeouts = { attempt: "8s", total: "10s" } as const;
      const backoff = { kind: "constant", first: 5_000, max: 5_000, jitter: false } as never;
      return (await ran(rig, fails, { timeouts, retry: { backoff } })).handle;
    },
  },
  {
    name: "the last of its attempts timed out",
    first: "attempt_timed_out",
    also: ["not_retried", "retry_by_hand"],
    says: /Attempt 1 ran longer than 2s \(attempt, set by definition\)\..+ It is kept as a dead letter/,
    async make(rig) {
      const timeouts = { attempt: "2s" } as const;
      const retry = { attempts: 1, onExhausted: "dead-letter" } as const;
      return (await ran(rig, obedient, { timeouts, retry }, 5_000)).handle;
    },
  },
  {
    name: "a timeout under the mode discard",
    first: "attempt_timed_out",
    also: ["not_retried"],
    async make(rig) {
      const timeouts = { attempt: "2s", mode: "discard" } as const;
      return (await ran(rig, obedient, { timeouts }, 5_000)).handle;
    },
  },
  {
    name: "a timed-out job whose handler still runs",
    first: "attempt_timed_out",
    also: ["handler_still_runs"],
    says: /and was ended by force/,
    alsoSays: /^A handler still runs in worker .* after the verdict on its attempt/,
    async make(rig) {
      const timeouts = { attempt: "2s", grace: "1s" } as const;
      return (await ran(rig, deaf, { timeouts, retry: { attempts: 1 } }, 10_000)).handle;
    },
  },
  {
    name: "a job whose worker died with it",
    first: "stalled",
    also: ["not_retried"],
    says: /no sign of life for 60s \(heartbeat, set by built-in\)/,
    async make(rig) {
      const [, worker] = [await rig.open(), await rig.open()];
      const mail = job(deaf, { retry: { onStall: "discard" } });
      const handle = await rig.of(worker.engine.enqueue(mail.definition));
      worker.work([mail.processor]);
      await rig.advance(1_000);
      worker.kill();
      await rig.advance(70_000);
      return handle;
    },
  },
  {
    name: "a remote worker that did not report in time",
    first: "visibility_expired",
    async make(rig) {
      const { engine } = await rig.open();
      const { definition } = job(deaf, { retry: { attempts: 1 } });
      const retry = { attempts: 1 } as const;
      const handle = await rig.of(engine.enqueue(definition, null, { retry }));
      const fetch = { queues: ["default"], count: 1, worker: "box-1", hears: false, visibility: 5_000 };
      await rig.of(engine.service.fetch(fetch));
      await rig.advance(10_000);
      return handle;
    },
  },
];

const byError: Situation[] = [
  {
    name: "a job whose attempts all failed",
    first: "handler_failed",
    also: ["not_retried"],
    says: /Attempt 2 failed with Error: no route to host/,
    async make(rig) {
      const backoff = { kind: "constant", first: 100, max: 100, jitter: false } as never;
      return (await ran(rig, fails, { retry: { attempts: 2, backoff } })).handle;
    },
  },
  {
    name: "an error that is not retried",
    first: "handler_failed",
    also: ["not_retried"],
    make: async (rig) => (await ran(rig, fails, { retry: { except: ["Error"] } })).handle,
  },
  {
    name: "a sandbox that died",
    first: "sandbox_killed",
    async make(rig) {
      const dies = () => {
        throw new SandboxKilled("signal SIGSEGV", { code: null, signal: "SIGSEGV" });
      };
      return (await ran(rig, dies, { retry: { attempts: 1 } })).handle;
    },
  },
  {
    name: "a job that a full queue dropped",
    first: "queue_full",
    async make(rig) {
      const { engine } = await rig.open();
      await rig.of(engine.queues.configure("default", { depth: { most: 1, onFull: "drop-oldest" } }));
      const { definition } = job(deaf);
      const handle = await rig.of(engine.enqueue(definition));
      await rig.of(engine.enqueue(definition));
      await rig.advance(1_000);
      return handle;
    },
  },
  {
    name: "a job that its limit dropped",
    first: "limit_dropped",
    async make(rig) {
      const limit = { key: "smtp", concurrency: 1, onLimit: "drop" } as const;
      const { engine, mail } = await ran(rig, deaf, { limit });
      const handle = await rig.of(engine.enqueue(mail.definition));
      await rig.advance(2_000);
      return handle;
    },
  },
];

export const ENDED: readonly Situation[] = [...ok, ...cancelled, ...byTime, ...byError];
