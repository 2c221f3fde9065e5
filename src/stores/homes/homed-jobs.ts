import { turnsIn } from "../../core/fair/turns.ts";
import { cellOfId, cellOfName, type Home, homeOf } from "../../core/home/cell.ts";
import { cellOfRecord } from "../../core/home/cell-of-row.ts";
import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import { earlier } from "../../core/time.ts";
import * as port from "../../ports/store.ts";
import { checkBatch, checkJobs, checkLimit } from "../check-batch.ts";
import { checkBeatInstants, checkClaimInstants, checkSweepInstants } from "../check-instants.ts";
import { compareText, fill, perHome } from "./fan-out.ts";
import type { HomeStore } from "./home-store.ts";
import { isPostal, type Outbox } from "./outbox.ts";
import type { Visits } from "./visits.ts";
import type { Wakes } from "./wakes.ts";

type OnFailed = (home: Home, error: unknown) => void;

/** Homes whose copies of settings one prune compares. */
const RECONCILED_AT_ONCE = 4;

/** Jobs in several homes. Each job is in the home that its id names. */
export function createHomedJobs(
  homes: readonly HomeStore[],
  outbox: Outbox,
  visits: Visits,
  wakes: Wakes,
  onFailed: OnFailed,
): port.JobStore {
  const homeOfJob = ({ id }: { readonly id: JobId }) => homeOf(cellOfId(id), homes.length);
  const at = (home: Home) => (homes[home] as HomeStore).jobs;
  let reconciled = 0;
  const enqueue = async (
    jobs: readonly NewJob[],
    options: port.EnqueueCallOptions,
  ): Promise<port.Enqueued[]> => {
    checkJobs(jobs, options.now);
    return perHome(jobs, homeOfJob, (home, own) => {
      wakes.wrote(home);
      return at(home).enqueue(own, options);
    });
  };
  return {
    enqueue,
    claim: (request) => claim(homes, request, visits, onFailed),
    beat: (request) => beat(homes, request, homeOfJob),
    sweep: (request) => sweep(homes, request, outbox, wakes, onFailed),
    async load(ids, options) {
      checkBatch(ids, "ids");
      const rows: (JobRow | null | undefined)[] = await perHome(
        ids,
        (id) => homeOf(cellOfId(id), homes.length),
        (home, own) => at(home).load(own, options && shareOf(options, own.length / ids.length)),
      );
      // A home that ended early ends the answer.
      const end = rows.indexOf(undefined);
      return (end < 0 ? rows : rows.slice(0, end)) as (JobRow | null)[];
    },
    async prune(request) {
      checkLimit(request.limit);
      // A few homes per call: a prune comes once a minute and process.
      for (let left = RECONCILED_AT_ONCE; left > 0; left--) {
        reconciled = (reconciled + 1) % homes.length;
        await outbox.reconcile(reconciled, request.now).catch((error) => onFailed(reconciled, error));
      }
      const all = homes.map((_, home) => home);
      const counts = await fill(
        all,
        request.limit,
        async (home, limit) => {
          const pruned = await at(home).prune({ ...request, limit });
          return new Array<true>(Math.min(pruned, limit)).fill(true);
        },
        { onFailed },
      );
      return counts.length;
    },
  };
}

/** A home with a share of the ids may answer with that share of the characters. */
function shareOf({ size, ...options }: port.LoadOptions, share: number): port.LoadOptions {
  return size === undefined ? options : { ...options, size: Math.max(1, Math.ceil(size * share)) };
}

/** A queue with a limit is in one home. Jobs that were stored before it had the limit are elsewhere, and do not count. */
async function claim(
  homes: readonly HomeStore[],
  request: port.ClaimRequest,
  visits: Visits,
  onFailed: OnFailed,
): Promise<JobRow[]> {
  checkLimit(request.limit, port.BATCH_LIMIT);
  checkClaimInstants(request);
  const { queue, limit, most, homes: named, turns, ...rest } = request;
  const order = visits.order(queue, named);
  const queueHome = homeOf(cellOfName(port.queueMark(queue)), homes.length);
  const sentAt = visits.moment;
  const ask = async (home: Home, share: number) => {
    const { moment } = visits;
    const bound = most !== undefined && home === queueHome ? { most } : {};
    const { jobs } = homes[home] as HomeStore;
    const own = turns ? { turns: turnsIn(home, turns) } : {};
    const found = await jobs.claim({ ...rest, ...bound, ...own, queue, limit: share });
    visits.claimed(queue, home, found.length === share, moment);
    return found;
  };
  const rows = await fill(order, limit, ask, {
    // Turns go on within one call: a home is asked once, for all that is missing.
    width: turns ? 1 : undefined,
    // If only some homes are asked and none answers, the others may, when a hint or a look names them.
    failsWith: named?.length ?? homes.length,
    onFailed: (home, error) => {
      visits.claimed(queue, home, false, sentAt);
      onFailed(home, error);
    },
  });
  return turns ? rows : rows.sort((a, b) => a.rank - b.rank || compareText(a.id, b.id));
}

/** The record of the worker is written in its own home, also if the worker has no job there. */
async function beat(
  homes: readonly HomeStore[],
  request: port.BeatRequest,
  homeOfJob: (job: { readonly id: JobId }) => Home,
): Promise<port.BeatAnswer[]> {
  checkBatch(request.jobs, "jobs");
  checkBeatInstants(request);
  const { now, worker, jobs } = request;
  const workerHome = homeOf(cellOfRecord(["worker", worker.id]), homes.length);
  const call = (home: Home, own: port.BeatRequest["jobs"]) =>
    (homes[home] as HomeStore).jobs.beat({ now, worker: home === workerHome ? worker : null, jobs: own });
  const alone = jobs.some((job) => homeOfJob(job) === workerHome) ? [] : call(workerHome, []);
  const [answers] = await Promise.all([perHome(jobs, homeOfJob, call), alone]);
  return answers;
}

/** Each round sweeps the homes for a share of what is missing. A home that has more left is in the next round. */
async function sweep(
  homes: readonly HomeStore[],
  { homes: named, ...request }: port.SweepRequest,
  outbox: Outbox,
  wakes: Wakes,
  onFailed: OnFailed,
): Promise<port.Swept> {
  checkLimit(request.limit);
  checkSweepInstants(request);
  const ready = new Map<string, number>();
  const jobs: JobRow[] = [];
  const records: port.RecordRow[] = [];
  const nexts = new Map<Home, port.Swept["nextWakeAt"]>();
  const due = wakes.due(request.now);
  const all = named ?? [...due.keys()];
  let [asked, promoted, failed] = [[...all], 0, 0];
  for (let room = request.limit; room > 0 && asked.length > 0; ) {
    const round = asked.slice(0, room);
    const share = Math.floor(room / round.length);
    const answers = await Promise.allSettled(
      round.map((home) => (homes[home] as HomeStore).jobs.sweep({ ...request, limit: share })),
    );
    const again: Home[] = [];
    for (const [index, answer] of answers.entries()) {
      const home = round[index] as Home;
      if (answer.status === "rejected") {
        failed += 1;
        onFailed(home, answer.reason);
        // The home may have something due. The next sweep looks again.
        nexts.set(home, request.holdUntil);
        wakes.swept(home, request.holdUntil, due.get(home));
        if (failed === all.length) throw answer.reason;
        continue;
      }
      const swept = answer.value;
      for (const [queue, count] of swept.ready) {
        ready.set(queue, (ready.get(queue) ?? 0) + count);
        promoted += count;
      }
      jobs.push(...swept.jobs);
      records.push(...swept.records);
      nexts.set(home, swept.nextWakeAt);
      wakes.swept(home, swept.nextWakeAt, due.get(home));
      if (swept.nextWakeAt !== null && swept.nextWakeAt <= request.now) again.push(home);
    }
    asked = [...asked.slice(round.length), ...again];
    room = request.limit - Math.max(promoted, jobs.length, records.length);
  }
  const left = asked.some((home) => !nexts.has(home)) ? request.now : null;
  const postal = records.filter(isPostal);
  if (postal.length > 0) await outbox.handle(postal, request.now);
  return {
    ready,
    jobs,
    records: records.filter((record) => !isPostal(record)),
    nextWakeAt: [...nexts.values()].reduce(earlier, earlier(left, wakes.next(nexts))),
  };
}
