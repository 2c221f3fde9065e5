import { NO_FAIR_KEY } from "../../fair/fair-options.ts";
import { hasProcessor, takesQueue, type WorkerReport } from "../../worker/worker-report.ts";
import { dueAtOf, type JobRow } from "../job.ts";
import { liveWorkers, MOST_AHEAD, MOST_KEYS, type ShareFacts, type WhyFacts } from "./facts.ts";
import { aheadText, heldReason } from "./limits.ts";
import { act, counted, reason, roughly, WAIT, type WhyReason } from "./reason.ts";

/** A worker with a free slot claims within this time, even if a hint is lost. */
const CLAIMED_WITHIN = 5_000;

/** Why an available job has not been claimed: the jobs before it, and the slots of the workers that could run it. */
export function lineReasons(facts: WhyFacts, isBlocked: boolean): WhyReason[] {
  const { row, ahead } = facts;
  // While nothing of the queue can start, the jobs before it and the slots do not matter.
  if (row.state !== "available" || ahead === null || isBlocked) return [];
  const reasons = [...queueSlots(facts)];
  if (ahead > 0) reasons.push(facts.share ? fairShare(facts, facts.share, ahead) : jobsAhead(facts, ahead));
  // The queue is full, or others come first. Then the free slots of workers say nothing.
  if (reasons.length > 0) return reasons;
  const able = liveWorkers(facts).filter(
    (worker) => !worker.isStopping && takesQueue(worker, row.queue) && hasProcessor(worker, row),
  );
  const free = able.find((worker) => isFree(worker, row));
  return [free || able.length === 0 ? next(facts, free) : busy(facts, able)];
}

function isFree({ slots }: WorkerReport, { queue }: JobRow): boolean {
  const [running, concurrency] = slots?.[queue] ?? [0, 1];
  return running < concurrency;
}

function queueSlots({ row, queueSlots: held, now }: WhyFacts): WhyReason[] {
  if (held === null || held.slots.active < held.concurrency) return [];
  const place = { kind: "queue", id: row.queue } as const;
  const text = `Wait, or call engine.queues.configure("${row.queue}", { concurrency }) with more.`;
  const action = act("raise-limit", text, row.queue);
  const what = `Queue "${row.queue}"`;
  return [heldReason("queue_slots_full", what, held.concurrency, held.slots, place, action, now)];
}

function startsIn(pace: number | null, ahead: number): string {
  if (pace === null) return "none of them started in the last minutes";
  const orLater = ahead > MOST_AHEAD ? " or later" : "";
  return `at the pace of the last minutes it starts in about ${roughly(ahead / pace)}${orLater}`;
}

/** Its key has turns with others: many jobs of another key do not delay it by more than their share. */
function fairShare({ row, pace, now }: WhyFacts, share: ShareFacts, ahead: number): WhyReason {
  const name = share.key === NO_FAIR_KEY ? "Jobs without a fair key are" : `Its fair key "${share.key}" is`;
  const keys = share.keys >= MOST_KEYS ? `${MOST_KEYS} keys or more` : counted(share.keys, "key");
  const weight = share.weight === 1 ? "" : ` with weight ${share.weight}`;
  const others = ahead - share.own;
  const before = `${aheadText(share.own)} of the key and ${others > MOST_AHEAD ? "many" : `up to ${others}`} of others come before it`;
  const sentence = `${name} one of ${keys} that take turns in queue "${row.queue}"${weight}. ${before}; ${startsIn(pace, ahead)}.`;
  return reason("fair_share", sentence, {
    since: dueAtOf(row.rank),
    until: pace === null ? null : Math.round(now + ahead / pace),
    who: { kind: "queue", id: row.queue },
    action: act(
      "start-worker",
      `Wait, add workers or concurrency, or give the key more weight with engine.queues.configure("${row.queue}", { fair: { weights } }).`,
      row.queue,
    ),
  });
}

function jobsAhead({ row, pace, now }: WhyFacts, ahead: number): WhyReason {
  const isOne = ahead === 1;
  const before = `${aheadText(ahead)} of queue "${row.queue}" ${isOne ? "is" : "are"} before it`;
  return reason("jobs_ahead", `${before}; ${startsIn(pace, ahead)}.`, {
    since: dueAtOf(row.rank),
    until: pace === null ? null : Math.round(now + ahead / pace),
    who: { kind: "queue", id: row.queue },
    action: act(
      "start-worker",
      "Wait, add workers or concurrency, or give it a higher priority with handle.prioritise().",
      row.queue,
    ),
  });
}

function busy({ row }: WhyFacts, able: readonly WorkerReport[]): WhyReason {
  const slots = able.reduce((sum, worker) => sum + (worker.slots?.[row.queue]?.[1] ?? 0), 0);
  const [first] = able as [WorkerReport];
  const workers = able.length === 1 ? `worker ${first.id}` : `${able.length} workers`;
  const sentence = `It is the next of queue "${row.queue}", and all ${slots} slots of ${workers} are taken.`;
  return reason("workers_busy", sentence, {
    since: dueAtOf(row.rank),
    who: { kind: "worker", id: first.id },
    action: act("start-worker", "Wait, or add workers or concurrency.", row.queue),
  });
}

function next({ row, now }: WhyFacts, free: WorkerReport | undefined): WhyReason {
  const since = dueAtOf(row.rank);
  const who = free ? ({ kind: "worker", id: free.id } as const) : null;
  if (!free || now - since <= CLAIMED_WITHIN) {
    const sentence = `It is the next of queue "${row.queue}" and starts within about a second.`;
    return reason("next_in_line", sentence, { since, who, action: WAIT });
  }
  const sentence = `It has been the next of queue "${row.queue}" for ${roughly(now - since)}. Worker ${free.id} has a free slot and has not claimed it.`;
  const text = `Look at the log of worker ${free.id}: its store may be slow, or many of its writes may be waiting.`;
  return reason("not_claimed", sentence, { since, who, action: act("look-at-worker", text, free.id) });
}
