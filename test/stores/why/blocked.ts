import { deaf, job, type Rig } from "./rig.ts";
import { sandboxedJob } from "./sandbox.ts";
import type { Situation } from "./situation.ts";

const workers: Situation[] = [
  {
    name: "a job where no worker ever was",
    first: "no_worker",
    async make(rig) {
      const { engine } = await rig.open();
      return rig.of(engine.enqueue(job(deaf).definition));
    },
  },
  {
    name: "a job whose only worker died",
    first: "no_worker",
    says: /The last one, .+, was last seen 2\ds ago/,
    async make(rig) {
      const [{ engine }, other] = [await rig.open(), await rig.open()];
      const mail = job(() => {});
      other.work([mail.processor]);
      await rig.advance(6_000);
      other.kill();
      const handle = await rig.of(engine.enqueue(mail.definition));
      await rig.advance(20_000);
      return handle;
    },
  },
  {
    name: "a queue that is one letter from the right one",
    first: "no_worker_for_queue",
    says: /Did you mean "payments"\?/,
    async make(rig) {
      const { engine, work } = await rig.open();
      const pay = job(() => {}, { queue: "payments" });
      work([pay.processor]);
      const handle = await rig.of(engine.enqueue(pay.definition, null, { queue: "payment" }));
      await rig.advance(2_000);
      return handle;
    },
  },
  {
    name: "a queue whose worker died while others live",
    first: "no_worker_for_queue",
    says: /Worker .+ takes it, and was last seen/,
    async make(rig) {
      const [{ engine, work }, other] = [await rig.open(), await rig.open()];
      const bulk = job(() => {}, { queue: "bulk" });
      other.work([bulk.processor]);
      work([job(() => {}, { type: "urgent.mail", queue: "urgent" }).processor]);
      await rig.advance(1_000);
      other.kill();
      const handle = await rig.of(engine.enqueue(bulk.definition));
      await rig.advance(20_000);
      return handle;
    },
  },
  {
    name: "a queue other than that of the processor's definition",
    first: "no_worker_for_queue",
    says: /The processor of card\.charge belongs to queue "payments"/,
    async make(rig) {
      const { engine, work } = await rig.open();
      const pay = job(() => {}, { type: "card.charge", queue: "payments" });
      work([pay.processor]);
      return rig.of(engine.enqueue(pay.definition, null, { queue: "night" }));
    },
  },
  {
    name: "a type that no worker of the queue knows",
    first: "no_processor",
    also: ["given_back"],
    async make(rig) {
      const { engine, work } = await rig.open();
      work([job(() => {}).processor]);
      const handle = await rig.of(engine.enqueue(job(deaf, { type: "report.build" }).definition));
      await rig.advance(12_000);
      return handle;
    },
  },
  {
    name: "a type that is misspelled",
    first: "no_processor",
    says: /Did you mean mail\.send\?/,
    async make(rig) {
      const { engine, work } = await rig.open();
      work([job(() => {}).processor]);
      const handle = await rig.of(engine.enqueue(job(deaf, { type: "mail.sned" }).definition));
      await rig.advance(2_000);
      return handle;
    },
  },
  {
    name: "a type that only a worker of another queue knows",
    first: "no_processor",
    says: /has one, but takes "payments" only/,
    async make(rig) {
      const { engine, work } = await rig.open();
      const pay = job(() => {}, { type: "card.charge", queue: "payments" });
      work([job(() => {}).processor]);
      work([pay.processor]);
      const handle = await rig.of(engine.enqueue(pay.definition, null, { queue: "default" }));
      await rig.advance(1_000);
      return handle;
    },
  },
  {
    name: "a job whose only worker drains",
    first: "workers_stopping",
    async make(rig) {
      const { engine, work } = await rig.open();
      const mail = job(deaf);
      const worker = work([mail.processor], { queues: { default: { concurrency: 5 } } });
      await rig.of(engine.enqueue(mail.definition));
      await rig.advance(3_000);
      void worker.close({ drain: "20s" });
      await rig.advance(1_000);
      return rig.of(engine.enqueue(mail.definition));
    },
  },
  {
    name: "a job whose only worker was asked to be quiet",
    first: "workers_stopping",
    async make(rig) {
      const { engine } = await rig.open();
      const { service } = engine;
      const about = { queues: ["default"] };
      const said = { id: "box-1", state: "running", running: 0, seenAt: rig.now(), about };
      await rig.of(service.beat(said, []));
      await rig.of(service.workers.direct("box-1", "quiet"));
      return rig.of(engine.enqueue(job(deaf).definition));
    },
  },
  {
    name: "a job whose only worker carries too many stuck handlers",
    first: "workers_stuck",
    async make(rig) {
      const { engine, work } = await rig.open();
      const timeouts = { attempt: "1s", grace: "0s" } as const;
      const mail = job(deaf, { timeouts, retry: { attempts: 1 } });
      work([mail.processor], { maxStuck: 1 });
      await rig.of(engine.enqueue(mail.definition));
      // An idle worker reports every 10 s, so its report says by then that it is stuck.
      await rig.advance(15_000);
      return rig.of(engine.enqueue(mail.definition));
    },
  },
  {
    name: "a job whose only worker cannot claim",
    first: "workers_failing",
    async make(rig) {
      const [{ engine }, other] = [await rig.open(), await rig.open()];
      const mail = job(() => {});
      other.work([mail.processor]);
      await rig.advance(1_000);
      other.fail("jobs.claim");
      const handle = await rig.of(engine.enqueue(mail.definition));
      // An idle worker reports every 10 s.
      await rig.advance(12_000);
      return handle;
    },
  },
  {
    name: "a sandbox whose module does not load",
    first: "sandbox_broken",
    says: /Cannot find module 'sharp'/,
    async make(rig) {
      const { engine, work } = await rig.open();
      const resize = sandboxedJob("fails");
      work([resize.processor]);
      for (let burnt = 0; burnt < 4; burnt++) await rig.of(engine.enqueue(resize.definition));
      await rig.advance(3_000);
      const handle = await rig.of(engine.enqueue(resize.definition));
      await rig.advance(7_000);
      return handle;
    },
  },
];

/** An engine with a worker, and jobs of one limit of which the first runs for ever. */
async function limited(rig: Rig, limit: object, count = 2, run: () => unknown = deaf) {
  const { engine, work } = await rig.open();
  const mail = job(run, { limit: { key: "smtp", ...limit } });
  work([mail.processor]);
  const handles = [];
  for (let index = 0; index < count; index++) {
    handles.push(await rig.of(engine.enqueue(mail.definition)));
    await rig.advance(1_000);
  }
  return { engine, mail, last: handles.at(-1) as (typeof handles)[number], first: handles[0] };
}

const limits: Situation[] = [
  {
    name: "a limit whose only slot is taken by a running job",
    first: "limit_full",
    says: /Limit "smtp" allows 1 job at once, and all are taken: job .+ \(mail\.send\) has held a slot for/,
    make: async (rig) => (await limited(rig, { concurrency: 1 })).last,
  },
  {
    name: "a full limit with jobs in line before it",
    first: "limit_full",
    also: ["limit_ahead"],
    make: async (rig) => (await limited(rig, { concurrency: 1 }, 4)).last,
  },
  {
    name: "a limit whose slots are taken by jobs that wait for a worker",
    first: "limit_full",
    says: /jobs that were admitted before it hold all slots and wait for a worker/,
    async make(rig) {
      const { engine, work } = await rig.open();
      const busy = job(deaf, { type: "busy.job" });
      const mail = job(deaf, { limit: { key: "smtp", concurrency: 1 } });
      work([busy.processor, mail.processor], { queues: { default: { concurrency: 1 } } });
      await rig.of(engine.enqueue(busy.definition));
      await rig.advance(1_000);
      await rig.of(engine.enqueue(mail.definition));
      const handle = await rig.of(engine.enqueue(mail.definition));
      await rig.advance(1_000);
      return handle;
    },
  },
  {
    name: "a limit that an operator narrowed",
    first: "limit_full",
    async make(rig) {
      const { engine, mail } = await limited(rig, { concurrency: 5 }, 1);
      await rig.of(engine.limits.put("smtp", { concurrency: 1 }));
      const handle = await rig.of(engine.enqueue(mail.definition));
      await rig.advance(1_000);
      return handle;
    },
  },
  {
    name: "a strict limit whose job waits for its retry",
    first: "limit_strict",
    async make(rig) {
      const fails = () => {
        throw new Error("no");
      };
      const { engine, work } = await rig.open();
      const backoff = { kind: "constant", first: 600_000, max: 600_000, jitter: false } as never;
      const mail = job(fails, { limit: { key: "smtp", concurrency: 1, strict: true }, retry: { backoff } });
      work([mail.processor]);
      await rig.of(engine.enqueue(mail.definition));
      await rig.advance(2_000);
      const handle = await rig.of(engine.enqueue(mail.definition));
      await rig.advance(1_000);
      return handle;
    },
  },
  {
    name: "a rate that is used up",
    first: "rate_full",
    says: /allows 1 start in 1h, and all are used\. The next start is allowed in 59m/,
    make: async (rig) => (await limited(rig, { rate: { limit: 1, per: "1h" } }, 2, () => {})).last,
  },
  {
    name: "a limit that puts jobs off",
    first: "limit_rescheduled",
    make: async (rig) => (await limited(rig, { concurrency: 1, onLimit: { reschedule: "5m" } })).last,
  },
  {
    name: "a queue whose concurrency is used up",
    first: "queue_slots_full",
    says: /Queue "default" allows 1 job at once/,
    async make(rig) {
      const { engine, work } = await rig.open();
      await rig.of(engine.queues.configure("default", { concurrency: 1 }));
      const mail = job(deaf);
      work([mail.processor]);
      await rig.of(engine.enqueue(mail.definition));
      await rig.advance(1_000);
      const handle = await rig.of(engine.enqueue(mail.definition));
      await rig.advance(2_000);
      return handle;
    },
  },
];

/** Jobs that could start, and that no worker can run or no limit admits. */
export const BLOCKED: readonly Situation[] = [...workers, ...limits];
