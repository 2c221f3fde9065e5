import { formatDuration, type Instant } from "../../time.ts";
import type { JobRow, Policy } from "../job.ts";
import { softKind, stallAtOf } from "../policy/deadlines.ts";
import { runsEndlessly } from "../policy/endless.ts";
import { backoffDelay } from "../policy/retry.ts";
import type { WhyFacts } from "./facts.ts";
import { act, reason, roughly, WAIT, type WhyReason } from "./reason.ts";

/** A worker with a running attempt beats about once a second. After this time it counts as silent. */
const BUSY_SILENT_AFTER = 5_000;
/** A worker that has only claimed may beat as rarely as an idle one, every five seconds. */
const CLAIM_SILENT_AFTER = 7_000;
/** A standstill that is older than this does not explain the present. */
const BLOCKED_LATELY = 60_000;

/** Why an active job has not ended. */
export function whyActive(facts: WhyFacts): WhyReason[] {
  return facts.row.startedAt === null ? whyClaimed(facts) : whyRunning(facts, facts.row.startedAt);
}

/** The name of the worker that holds a job. For a remote worker, the server claims in its own name. */
function holderOf(row: JobRow): string {
  return row.policy?.worker ?? row.worker ?? "";
}

function whyClaimed({ row, now, holder }: WhyFacts): WhyReason[] {
  const id = holderOf(row);
  const who = { kind: "worker", id } as const;
  const { claimedAt: since, stallAt: until } = row;
  if (until !== null && until <= now) {
    const sentence = `Worker ${id} claimed it and did not enter its handler in time; the sweep gives it to another worker.`;
    return [reason("claim_expired", sentence, { since, who, action: lookAt(id) })];
  }
  const claimed = `Worker ${id} claimed it${since === null ? "" : ` ${roughly(now - since)} ago`}`;
  const silence = now - (holder?.seenAt ?? since ?? now);
  if (silence > CLAIM_SILENT_AFTER || (holder === null && silence > 2_000)) {
    const end =
      until === null
        ? ""
        : ` Its claim ends in ${roughly(until - now)}, and then another worker can take it.`;
    const sentence = `${claimed} and has been silent for ${roughly(silence)}.${end}`;
    return [reason("claimed_by_silent_worker", sentence, { since, until, who, action: lookAt(id) })];
  }
  const sandbox = holder?.sandboxes[row.type];
  if (sandbox && sandbox.waiting > 0 && sandbox.problem === null) {
    const isFull = sandbox.busy >= sandbox.size;
    const what = isFull
      ? `all ${sandbox.size} sandboxes of ${row.type} are busy`
      : `its sandbox is still loading`;
    const action = isFull
      ? act("raise-limit", `Wait, or give the sandbox of ${row.type} a larger size.`, row.type)
      : act("wait", "Nothing needs to be done; a spare sandbox would save the wait.");
    const code = isFull ? "sandbox_full" : "sandbox_cold";
    return [reason(code, `${claimed}, and ${what}.`, { since, until, who, action })];
  }
  return [reason("claimed", `${claimed} and enters its handler now.`, { since, until, who, action: WAIT })];
}

function lookAt(worker: string) {
  return act("look-at-worker", `Look whether the process of worker ${worker} still runs.`, worker);
}

function whyRunning(facts: WhyFacts, startedAt: Instant): WhyReason[] {
  return [
    ...verdictDue(facts),
    ...workerSilent(facts),
    ...softSignal(facts),
    ...handlerSilent(facts),
    ...blocked(facts, startedAt),
    ...stopping(facts),
    running(facts, startedAt),
    ...endless(facts.row),
    ...afterwards(facts.row),
  ];
}

function verdictDue({ row, now }: WhyFacts): WhyReason[] {
  const { hardAt } = row;
  if (hardAt === null || hardAt > now) return [];
  const sentence = `Its time was over ${roughly(now - hardAt)} ago; its worker or the sweep ends the attempt.`;
  const isLate = now - hardAt > BUSY_SILENT_AFTER;
  const action = isLate
    ? act("start-engine", "Start any process that opens this store: every engine sweeps.")
    : act("wait", "Nothing needs to be done.");
  return [reason("verdict_due", sentence, { since: hardAt, who: whoHolds(row), action })];
}

function whoHolds(row: JobRow) {
  return { kind: "worker", id: holderOf(row) } as const;
}

/** The last beat: of the handler if it beats itself, else of its worker. */
function lastSign({ row, holder }: WhyFacts): Instant {
  const ownBeat = row.stallAt !== null && row.heartbeat !== null ? row.stallAt - row.heartbeat : 0;
  return Math.max(row.startedAt as Instant, holder?.seenAt ?? 0, ownBeat);
}

function workerSilent(facts: WhyFacts): WhyReason[] {
  const { row, now, holder } = facts;
  // A remote worker beats for each of its jobs, and less often.
  const since = lastSign(facts);
  const silentAfter = holder?.isRemote || row.policy?.worker !== undefined ? 30_000 : BUSY_SILENT_AFTER;
  if (now - since <= silentAfter) return [];
  const id = holderOf(row);
  const until = stallAtOf(row, holder?.seenAt ?? null);
  const end =
    until === null
      ? "It has no heartbeat, so nothing takes the job back."
      : until <= now
        ? "The sweep takes the job back now."
        : `The job is taken back in ${roughly(until - now)}.`;
  const sentence = `Worker ${id} has been silent for ${roughly(now - since)}: its process is gone, its event loop is blocked, or it cannot reach the store. ${end}`;
  const action = until === null ? act("cancel", `Call engine.cancel("${row.id}").`, row.id) : lookAt(id);
  return [reason("worker_silent", sentence, { since, until, who: whoHolds(row), action })];
}

function softSignal({ row, now }: WhyFacts): WhyReason[] {
  const { softAt, hardAt } = row;
  if (softAt === null || softAt > now || (hardAt !== null && hardAt <= now)) return [];
  const field = softKind(row) === "total" ? "total" : "attempt";
  const said = row.policy?.hears
    ? `Its ${field} ran out, and its handler has ignored the signal for ${roughly(now - softAt)}.`
    : `Its ${field} ran out ${roughly(now - softAt)} ago; its worker hears no signal.`;
  const end =
    hardAt === null
      ? "Its grace is unbounded, so only a cancel ends it."
      : `It is ended by force in ${roughly(hardAt - now)}.`;
  const action =
    hardAt === null
      ? act("cancel", `Call engine.cancel("${row.id}").`, row.id)
      : act("change-code", "Let the handler stop when its signal aborts, or run it in a sandbox.", row.type);
  return [
    reason("soft_signal_ignored", `${said} ${end}`, {
      since: softAt,
      until: hardAt,
      who: whoHolds(row),
      action,
    }),
  ];
}

function handlerSilent({ row, now }: WhyFacts): WhyReason[] {
  const { stallAt, heartbeat, policy } = row;
  if (stallAt === null || heartbeat === null || policy?.beats !== "handler") return [];
  const since = stallAt - heartbeat;
  if (now - since <= heartbeat / 2) return [];
  const sentence = `Its handler has not beaten for ${roughly(now - since)} of the ${formatDuration(heartbeat)} that its heartbeat allows.`;
  const text = "Let the handler call beat(), progress() or checkpoint() more often.";
  return [
    reason("handler_silent", sentence, {
      since,
      until: stallAt,
      who: whoHolds(row),
      action: act("change-code", text),
    }),
  ];
}

function blocked({ row, now, holder }: WhyFacts, startedAt: Instant): WhyReason[] {
  const last = holder?.blocked;
  if (!last || last.at < startedAt || now - last.at > BLOCKED_LATELY) return [];
  const sentence = `The event loop of worker ${holderOf(row)} was blocked for ${roughly(last.gap)}, until ${roughly(now - last.at)} ago: no deadline in its process could be kept meanwhile.`;
  const text = "Find the code that computes without a pause, and run it in a sandbox.";
  const parts = { since: last.at - last.gap, until: last.at, who: whoHolds(row) };
  return [reason("worker_blocked", sentence, { ...parts, action: act("change-code", text, row.type) })];
}

function stopping({ row, holder }: WhyFacts): WhyReason[] {
  if (!holder?.isStopping) return [];
  const sentence = `Worker ${holder.id} is shutting down: it lets the attempt end, or gives the job back unspent.`;
  return [reason("worker_stopping", sentence, { who: whoHolds(row), action: WAIT })];
}

function running(facts: WhyFacts, startedAt: Instant): WhyReason {
  const { row, now } = facts;
  const { softAt, hardAt, policy } = row;
  const attempts = policy?.retry.attempts;
  const attempt = `attempt ${row.attempt}${attempts === undefined ? "" : ` of ${attempts}`}`;
  const left =
    softAt !== null && softAt > now ? `, and is signalled to stop in ${roughly(softAt - now)}` : "";
  const sign = `last sign of life ${roughly(now - Math.min(now, lastSign(facts)))} ago`;
  const sentence = `Worker ${holderOf(row)} has run ${attempt} for ${roughly(now - startedAt)} (${sign})${left}.`;
  const until = softAt !== null && softAt > now ? softAt : hardAt;
  const text = `Wait, call engine.extend("${row.id}", …) if it needs longer, or engine.cancel("${row.id}").`;
  return reason("running", sentence, {
    since: startedAt,
    until,
    who: whoHolds(row),
    action: act("wait", text, row.id),
  });
}

function endless(row: JobRow): WhyReason[] {
  if (!runsEndlessly(row)) return [];
  const sentence = "Nothing limits this attempt: if it hangs, it holds its slot until it is cancelled.";
  const text = `Call engine.extend("${row.id}", { attempt: "30m" }) to give it a limit.`;
  return [reason("endless", sentence, { action: act("extend", text, row.id) })];
}

/** What the retry policy will do if the attempt fails or times out. */
function afterwards(row: JobRow): WhyReason[] {
  const { policy } = row;
  if (!policy) return [];
  const isLast = row.attempt >= policy.retry.attempts;
  const isDropped = policy.mode === "discard" && row.softAt !== null;
  if (!isLast && !isDropped) {
    const delay = backoffDelay({ ...policy.retry.backoff, jitter: false }, row.attempt, () => 0);
    const sentence = `If this attempt fails, the next one follows after about ${roughly(delay)}.`;
    return [reason("then_retry", sentence, { action: WAIT })];
  }
  const sentence = isLast
    ? lastAttempt(policy)
    : "If this attempt times out, the job is discarded: its mode is discard.";
  return [
    reason("then_end", sentence, {
      action: act("extend", `Call engine.extend("${row.id}", …) if it needs longer.`, row.id),
    }),
  ];
}

function lastAttempt({ retry: { attempts, onExhausted } }: Policy): string {
  const end = onExhausted === "dead-letter" ? "the job becomes a dead letter" : "the job is discarded";
  return `This is the last of ${attempts} attempts: if it fails, ${end}.`;
}
