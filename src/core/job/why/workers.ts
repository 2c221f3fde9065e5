import { nearestName } from "../../nearest-name.ts";
import { versionOfJob } from "../../registry/job-version.ts";
import { hasProcessor, takesQueue, type WorkerReport } from "../../worker/worker-report.ts";
import { liveWorkers, namesOf, type WhyFacts } from "./facts.ts";
import { act, counted, reason, roughly, type WhyReason } from "./reason.ts";

/** Why none of the workers can run a job of this queue and type; empty if one can. */
export function workerReasons(facts: WhyFacts): WhyReason[] {
  const { row, hasMoreWorkers } = facts;
  const live = liveWorkers(facts);
  const takers = live.filter((worker) => takesQueue(worker, row.queue));
  const able = takers.filter((worker) => hasProcessor(worker, row));
  // Workers that were not read may be able to run it.
  if (able.length === 0 && hasMoreWorkers) return [];
  if (live.length === 0) return [noWorker(facts)];
  if (takers.length === 0) return [noWorkerForQueue(facts, live)];
  if (able.length === 0) return [noProcessor(facts, live, takers)];
  const open = able.filter(({ isStopping }) => !isStopping);
  if (open.length === 0) return [stopping(able)];
  const working = open.filter(({ halted }) => halted === null);
  if (working.length === 0) return [halted(open)];
  return brokenSandbox(facts, working);
}

function startWorker(queue: string) {
  return act("start-worker", `Start a worker that takes queue "${queue}".`, queue);
}

function noWorker({ row, workers, now }: WhyFacts): WhyReason {
  const last = workers.toSorted((a, b) => b.seenAt - a.seenAt)[0];
  const silent = last ? ` The last one, ${last.id}, was last seen ${roughly(now - last.seenAt)} ago.` : "";
  return reason("no_worker", `No worker is alive.${silent}`, {
    since: last?.seenAt ?? null,
    who: last ? { kind: "worker", id: last.id } : null,
    action: startWorker(row.queue),
  });
}

function noWorkerForQueue({ row, workers, now }: WhyFacts, live: readonly WorkerReport[]): WhyReason {
  const queues = [...new Set(live.flatMap((worker) => worker.queues ?? []))].sort();
  const meant = nearestName(row.queue, queues);
  const home = live
    .flatMap(({ processors }) => processors ?? [])
    .find(({ type }) => type === row.type)?.queue;
  const silent = workers
    .filter((worker) => !live.includes(worker) && takesQueue(worker, row.queue))
    .toSorted((a, b) => b.seenAt - a.seenAt)[0];
  const hint =
    meant !== undefined
      ? ` Did you mean "${meant}"?`
      : silent
        ? ` Worker ${silent.id} takes it, and was last seen ${roughly(now - silent.seenAt)} ago.`
        : home && home !== row.queue
          ? ` The processor of ${row.type} belongs to queue "${home}".`
          : "";
  const sentence = `No live worker takes queue "${row.queue}"; ${counted(live.length, "live worker")} take${live.length === 1 ? "s" : ""} ${namesOf(queues)}.${hint}`;
  const wanted = meant ?? (silent ? undefined : home);
  const action =
    wanted === undefined || wanted === row.queue
      ? startWorker(row.queue)
      : act(
          "start-worker",
          `Start a worker that takes queue "${row.queue}", or enqueue into "${wanted}".`,
          row.queue,
        );
  return reason("no_worker_for_queue", sentence, { who: { kind: "queue", id: row.queue }, action });
}

function noProcessor(
  { row }: WhyFacts,
  live: readonly WorkerReport[],
  takers: readonly WorkerReport[],
): WhyReason {
  const types = takers.flatMap(({ processors }) => (processors ?? []).map(({ type }) => type));
  const meant = nearestName(row.type, types);
  const elsewhere = live.find((worker) => !takers.includes(worker) && hasProcessor(worker, row));
  const hint =
    meant !== undefined
      ? ` Did you mean ${meant}?`
      : elsewhere
        ? ` Worker ${elsewhere.id} has one, but takes ${namesOf(elsewhere.queues ?? [])} only.`
        : "";
  const takes = takers.length === 1 ? "takes" : "take";
  const version = otherVersion(row, takers);
  if (version !== undefined && !elsewhere) return version;
  const sentence = `${counted(takers.length, "live worker")} ${takes} queue "${row.queue}", and none has a processor for ${row.type}.${hint}`;
  const who = elsewhere ? ({ kind: "worker", id: elsewhere.id } as const) : null;
  const text = elsewhere
    ? `Let worker ${elsewhere.id} take queue "${row.queue}" too, or give its processor to a worker of that queue.`
    : `Give a worker of queue "${row.queue}" a processor for ${row.type}.`;
  return reason("no_processor", sentence, { who, action: act("change-code", text, row.type) });
}

/** A worker has a processor for the type, but not for the version of this job. */
function otherVersion(row: WhyFacts["row"], takers: readonly WorkerReport[]): WhyReason | undefined {
  const version = versionOfJob(row);
  const found = takers.flatMap(({ id, processors }) =>
    (processors ?? []).flatMap(({ type, versions }) =>
      type === row.type && versions ? [{ id, versions }] : [],
    ),
  );
  const [first] = found;
  if (version === undefined || !first) return undefined;
  const known = [...new Set(found.flatMap(({ versions }) => versions))];
  const sentence = `It is of version ${version} of ${row.type}, and the workers of queue "${row.queue}" run only ${namesOf(known)}.`;
  const text = `Start a worker whose definition of ${row.type} has version ${version} in its \`versions\`.`;
  const who = { kind: "worker", id: first.id } as const;
  return reason("no_processor", sentence, { who, action: act("change-code", text, row.type) });
}

function stopping(able: readonly WorkerReport[]): WhyReason {
  const [first] = able as [WorkerReport];
  const sentence = `Every worker that could run it takes no more jobs: ${namesOf(able.map(({ id }) => id))} ${able.length === 1 ? "is" : "are"} shutting down, or was asked to be quiet.`;
  const action = act(
    "start-worker",
    "Start another worker, or resume one that was asked to be quiet.",
    first.id,
  );
  return reason("workers_stopping", sentence, { who: { kind: "worker", id: first.id }, action });
}

function halted(open: readonly WorkerReport[]): WhyReason {
  const [first] = open as [WorkerReport];
  const who = { kind: "worker", id: first.id } as const;
  const says = first.problem ?? "it does not say why";
  if (first.halted === "failing") {
    const sentence = `No worker that could run it can claim: worker ${first.id} says that ${says}.`;
    const action = act("look-at-worker", `Look for store errors in the log of worker ${first.id}.`, first.id);
    return reason("workers_failing", sentence, { who, action });
  }
  const sentence = `Every worker that could run it has stopped claiming: worker ${first.id} says that ${says}.`;
  const since = first.stuck[0]?.since ?? null;
  const text = `Restart worker ${first.id}, and make its handlers end at the signal or run them in a sandbox.`;
  return reason("workers_stuck", sentence, { since, who, action: act("look-at-worker", text, first.id) });
}

function brokenSandbox({ row }: WhyFacts, working: readonly WorkerReport[]): WhyReason[] {
  const problems = working.map(({ sandboxes }) => sandboxes[row.type]?.problem ?? null);
  const [first] = working as [WorkerReport];
  if (problems.some((problem) => problem === null)) return [];
  const sentence = `The sandbox of ${row.type} is broken in worker ${first.id}: ${problems[0]}.`;
  const action = act(
    "change-code",
    "Mend the module; the worker tries to load it again by itself.",
    row.type,
  );
  return [reason("sandbox_broken", sentence, { who: { kind: "worker", id: first.id }, action })];
}
