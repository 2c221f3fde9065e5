import { chain, defineJob, group, snooze, step } from "../../../src/index.ts";
import { deaf, job, type Rig } from "./rig.ts";
import type { Situation } from "./situation.ts";

const later: Situation[] = [
  {
    name: "a job that was enqueued with a delay",
    first: "due_later",
    says: /in 59m 5\ds/,
    async make(rig) {
      const { engine, work } = await rig.open();
      const mail = job(() => {});
      work([mail.processor]);
      const handle = await rig.of(engine.enqueue(mail.definition, null, { delay: "1h" }));
      await rig.advance(2_000);
      return handle;
    },
  },
  {
    name: "a delayed job of a paused queue",
    first: "due_later",
    also: ["queue_paused"],
    async make(rig) {
      const { engine, work } = await rig.open();
      const mail = job(() => {});
      work([mail.processor]);
      await rig.of(engine.queues.pause("default"));
      return rig.of(engine.enqueue(mail.definition, null, { delay: "1h" }));
    },
  },
  {
    name: "a job whose handler snoozed",
    first: "snoozed",
    async make(rig) {
      const { engine, work } = await rig.open();
      const mail = job(() => snooze({ after: "10m" }));
      work([mail.processor]);
      const handle = await rig.of(engine.enqueue(mail.definition));
      await rig.advance(2_000);
      return handle;
    },
  },
  {
    name: "a job between two attempts",
    first: "backoff",
    says: /Attempt 1 of 3 failed: no route\. The next one starts in/,
    async make(rig) {
      const { engine, work } = await rig.open();
      const backoff = { kind: "constant", first: 60_000, max: 60_000, jitter: false } as never;
      const mail = job(
        () => {
          throw new Error("no route");
        },
        { retry: { backoff } },
      );
      work([mail.processor]);
      const handle = await rig.of(engine.enqueue(mail.definition));
      await rig.advance(2_000);
      return handle;
    },
  },
  {
    name: "a job that was enqueued as pending over the wire",
    first: "on_hold",
    async make(rig) {
      const { engine } = await rig.open();
      const definition = defineJob({ type: "mail.send" });
      const remote = { definition, payload: "null", options: {}, isPending: true };
      const [added] = await rig.of(engine.service.enqueue([remote], rig.now()));
      return { id: added?.row.id as string };
    },
  },
  {
    name: "a due job while no engine sweeps",
    first: "due_unswept",
    says: /No engine has swept for/,
    async make(rig) {
      const { engine, hang, kill } = await rig.open();
      const handle = await rig.of(engine.enqueue(job(deaf).definition, null, { delay: "1m" }));
      hang("jobs.sweep");
      await rig.advance(70_000);
      kill();
      return handle;
    },
  },
  {
    name: "a job past its wait while no engine sweeps",
    first: "expired_unswept",
    async make(rig) {
      const { engine, hang, kill } = await rig.open();
      const { definition } = job(deaf, { timeouts: { wait: "1m" } });
      const handle = await rig.of(engine.enqueue(definition));
      hang("jobs.sweep");
      await rig.advance(70_000);
      kill();
      return handle;
    },
  },
];

const queues: Situation[] = [
  {
    name: "a job during maintenance",
    first: "maintenance",
    says: /\(moving the database\), by a program that named no operator: no queue hands out jobs/,
    async make(rig) {
      const { engine, work } = await rig.open();
      const mail = job(() => {});
      work([mail.processor]);
      await rig.of(engine.maintenance.begin({ reason: "moving the database" }));
      return rig.of(engine.enqueue(mail.definition));
    },
  },
  {
    name: "a job of a paused queue",
    first: "queue_paused",
    says: /Queue "default" has been paused for 6s, by mia \(deploy\)\./,
    async make(rig) {
      const { engine, work } = await rig.open();
      const mail = job(() => {});
      work([mail.processor]);
      await rig.of(engine.queues.pause("default", { actor: "mia", reason: "deploy" }));
      await rig.advance(1_000);
      const handle = await rig.of(engine.enqueue(mail.definition));
      await rig.advance(5_000);
      return handle;
    },
  },
  {
    name: "a job of a paused queue during maintenance",
    first: "maintenance",
    also: ["queue_paused"],
    async make(rig) {
      const { engine, work } = await rig.open();
      const mail = job(() => {});
      work([mail.processor]);
      await rig.of(engine.queues.pause("default"));
      await rig.of(engine.maintenance.begin());
      return rig.of(engine.enqueue(mail.definition));
    },
  },
];

const lines: Situation[] = [
  {
    name: "a job behind others while every slot hangs",
    first: "jobs_ahead",
    says: /2 jobs of queue "default" are before it/,
    async make(rig) {
      const { engine, work } = await rig.open();
      const mail = job(deaf);
      work([mail.processor], { queues: { default: { concurrency: 1 } } });
      for (let index = 0; index < 3; index++) await rig.of(engine.enqueue(mail.definition));
      const handle = await rig.of(engine.enqueue(mail.definition));
      await rig.advance(3_000);
      return handle;
    },
  },
  {
    name: "a job behind more urgent ones in a queue that moves",
    first: "jobs_ahead",
    says: /at the pace of the last minutes it starts in about \d/,
    async make(rig) {
      const { engine, work } = await rig.open();
      const mail = job(() => new Promise<void>((resolve) => void rig.system.after(2_000, resolve)));
      const handle = await rig.of(engine.enqueue(mail.definition, null, { priority: -10 }));
      await rig.of(engine.enqueueMany(mail.definition, Array(200).fill(null)));
      work([mail.processor], { queues: { default: { concurrency: 1 } } });
      await rig.advance(90_000);
      return handle;
    },
  },
  {
    name: "the next job while every slot is taken",
    first: "workers_busy",
    async make(rig) {
      const { engine, work } = await rig.open();
      const mail = job(deaf);
      work([mail.processor], { queues: { default: { concurrency: 2 } } });
      for (let index = 0; index < 2; index++) await rig.of(engine.enqueue(mail.definition));
      await rig.advance(1_000);
      const handle = await rig.of(engine.enqueue(mail.definition));
      await rig.advance(3_000);
      return handle;
    },
  },
  {
    name: "a job that was enqueued this moment",
    first: "next_in_line",
    async make(rig) {
      const [{ engine }, other] = [await rig.open(), await rig.open()];
      other.work([job(() => {}).processor]);
      await rig.advance(5_000);
      return rig.of(engine.enqueue(job(() => {}).definition));
    },
  },
  {
    name: "a job that a free worker does not claim",
    first: "not_claimed",
    async make(rig) {
      const [{ engine }, other] = [await rig.open(), await rig.open()];
      const mail = job(() => {});
      other.work([mail.processor]);
      await rig.advance(1_000);
      other.hang("jobs.claim");
      const handle = await rig.of(engine.enqueue(mail.definition));
      await rig.advance(10_000);
      return handle;
    },
  },
];

const workflows: Situation[] = [
  {
    name: "a step behind one that runs",
    first: "workflow_step_before",
    says: /Step first\.step \(job .+\) before it in workflow .+ is active/,
    async make(rig) {
      const { engine, work } = await rig.open();
      const [first, second] = [job(deaf, { type: "first.step" }), job(deaf, { type: "second.step" })];
      work([first.processor, second.processor]);
      await rig.of(engine.workflows.start(chain([step(first.definition), step(second.definition)])));
      await rig.advance(3_000);
      return jobOf(rig, "second.step");
    },
  },
  {
    name: "a step behind a group of many",
    first: "workflow_step_before",
    says: /Step part\.step .+ and \d+ more steps/,
    async make(rig) {
      const { engine, work } = await rig.open();
      const [part, last] = [job(deaf, { type: "part.step" }), job(deaf, { type: "last.step" })];
      work([part.processor, last.processor]);
      const parts = Array.from({ length: 20 }, () => step(part.definition));
      await rig.of(engine.workflows.start(chain([group(parts as never), step(last.definition)])));
      await rig.advance(1_000);
      return jobOf(rig, "last.step");
    },
  },
  {
    name: "a step whose turn has come while no engine sweeps",
    first: "workflow_ready",
    async make(rig) {
      const { engine, work, hang, kill } = await rig.open();
      const first = job(() => {}, { type: "first.step" });
      const second = job(deaf, { type: "second.step" });
      await rig.of(engine.workflows.start(chain([step(first.definition), step(second.definition)])));
      hang("jobs.sweep");
      await rig.advance(2_000);
      work([first.processor, second.processor]);
      await rig.advance(8_000);
      kill();
      return jobOf(rig, "second.step");
    },
  },
];

/** The one job of a type. */
async function jobOf(rig: Rig, type: string): Promise<{ id: string }> {
  const { jobs } = await rig.ask((engine) => engine.find({ type }));
  return { id: jobs[0]?.id as string };
}

export const WAITING: readonly Situation[] = [...later, ...queues, ...lines, ...workflows];
