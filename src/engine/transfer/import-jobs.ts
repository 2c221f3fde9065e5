import { type By, parseBy } from "../../core/audit/audit-entry.ts";
import { CurfewError, refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { checkGivenHome, isStrictQueue } from "../../core/home/place-job.ts";
import { UUID } from "../../core/ids.ts";
import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import { holderRecord, holdersIn, type UniqueHolder } from "../../core/job/enqueue/unique-holders.ts";
import { type Fence, fenceSalt, type JobId, type JobRow } from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import { type ImportedJob, importedJob } from "../../core/job/transfer/import-job.ts";
import { type ParsedLine, parseLine } from "../../core/job/transfer/job-line.ts";
import { parseInstant } from "../../core/time.ts";
import { BATCH_LIMIT, type Enqueued, NAME_LIMIT, type RecordKey, type Unit } from "../../ports/store.ts";
import { changeRecord, commitUnits, STALE_TRIES, tooManyChanges } from "../commit/commit.ts";
import { recordKind } from "../commit/record-kind.ts";
import type { EngineContext } from "../context.ts";
import { UNIQUE } from "../enqueue/unique-keys.ts";
import { auditEffects } from "../events/audit-log.ts";
import { loadInParts } from "../find/bounded-reader.ts";

export interface ImportOptions {
  /** Checks the lines and looks for known ids, and stores nothing. Unique keys are not looked up. */
  readonly dryRun?: boolean;
  /** Who imports: each call that adds jobs leaves an entry in the audit. */
  readonly by?: By;
  /** The caller's transaction on the database of the store: the jobs exist if and only if it commits. */
  readonly tx?: unknown;
  /**
   * Remembers the ids under this name before the jobs may run, until a call names them in `forget`. A remembered job is
   * answered `exists`, even if it has ended and was deleted. For a caller that removes the jobs from another system
   * after this call: if it dies in between, repeating both adds nothing twice.
   */
  readonly remember?: string;
  /** Ids remembered under that name that the other system no longer has. */
  readonly forget?: readonly JobId[];
}

/** Ids of imported jobs that another system may still have, by the name of that system. */
const IMPORTED = recordKind<readonly JobId[]>("imported");
/** Beyond this the oldest ids are forgotten: those of a batch that was never repeated. */
const MOST_REMEMBERED = 10_000;

/**
 * What became of a line, in the order of the lines. `exists`: a job with this id is there, and nothing was changed.
 * `duplicate`: a live job holds its unique key, so it was not added. `invalid`: `message` says what is wrong.
 */
export interface ImportedLine {
  readonly status: "created" | "exists" | "duplicate" | "invalid";
  readonly id: string | null;
  readonly message?: string;
}

interface Job {
  readonly index: number;
  readonly parsed: ParsedLine;
  readonly made: ImportedJob;
  /** The fence with which it is added. */
  readonly fence: Fence;
}

interface Key {
  readonly index: number;
  readonly key: string;
  readonly holders: readonly UniqueHolder[];
}

/** Stores lines of an export. A call that failed or was killed can be repeated: known ids are found and left alone. */
export async function importLines(
  context: EngineContext,
  lines: readonly unknown[],
  options: ImportOptions,
): Promise<ImportedLine[]> {
  const { dryRun = false, by, tx, remember, forget = [] } = options;
  if (!Array.isArray(lines) || lines.length > BATCH_LIMIT)
    throw refuse("invalid_option", "lines", lines.length, `pass a list of at most ${BATCH_LIMIT} lines`);
  if (by !== undefined) parseBy(by);
  if (remember !== undefined && forget.length > 0) await changeMemory(context, remember, [], forget);
  const results: ImportedLine[] = [];
  const jobs: Job[] = [];
  const keys: Key[] = [];
  const now = context.clock.now();
  for (const [index, line] of lines.entries()) {
    try {
      if ((line as { kind?: unknown } | null)?.kind === "unique") keys.push({ index, ...parseKey(line) });
      else {
        const parsed = ownLine(parseLine(line, "job", context.documentLimit), context.tenant);
        const made = importedJob(parsed, now, remember !== undefined);
        checkGivenHome(made.job, isStrictQueue(context.queues.settingsOf(made.job.queue)), context.nextId);
        jobs.push({ index, parsed, made, fence: fenceSalt(context.random) });
      }
    } catch (error) {
      if (!(error instanceof CurfewError)) throw error;
      results[index] = { status: "invalid", id: idOf(line), message: error.message };
    }
  }
  const unknown = remember === undefined ? jobs : await withoutDone(context, remember, jobs, results);
  if (!dryRun) await context.admit?.(unknown.map(({ made }) => made.job));
  await (dryRun ? lookUp(context, unknown, results) : storeJobs(context, unknown, results, options));
  for (const key of keys) {
    if (!dryRun) await storeKey(context, key);
    results[key.index] = { status: "created", id: null };
  }
  const added = jobs.filter(({ index }) => results[index]?.status === "created").length;
  if (!dryRun && by && added > 0) {
    const effects = auditEffects(
      context,
      by,
      "jobs.import",
      { details: { jobs: added } },
      context.clock.now(),
    );
    await commitUnits(context, [{ effects }], { tx });
  }
  return results;
}

/** A job belongs to the tenant that imports it, also if another one exported it. */
function ownLine(parsed: ParsedLine, tenant: string | null): ParsedLine {
  if (tenant === null) return parsed;
  const { options } = parsed.row;
  const meta = { ...options?.meta, tenant_id: tenant };
  return { ...parsed, row: { ...parsed.row, options: { ...options, meta } } };
}

async function changeMemory(
  context: EngineContext,
  name: string,
  add: readonly JobId[],
  forget: readonly JobId[],
): Promise<void> {
  const gone = new Set(forget);
  await changeRecord(context, "import", IMPORTED, name, (known) => {
    const ids = new Set([...(known ?? []), ...add].filter((id) => !gone.has(id)));
    if (ids.size === 0) return known && { body: null };
    return { body: [...ids].slice(-MOST_REMEMBERED) };
  });
}

/** A remembered id was stored. If it is gone, or no longer marked as being imported, nothing is left to do for it. */
async function withoutDone(
  { store }: EngineContext,
  name: string,
  jobs: readonly Job[],
  results: ImportedLine[],
): Promise<readonly Job[]> {
  const remembered = new Set((await IMPORTED.load(store, name))?.body);
  const known = jobs.filter(({ parsed }) => remembered.has(parsed.id));
  const rows = await rowsOf(
    store,
    known.map(({ parsed }) => parsed.id),
  );
  const done = new Set(known.filter(({ parsed }) => !rows.get(parsed.id)?.isImporting));
  for (const { index, parsed } of done) results[index] = { status: "exists", id: parsed.id };
  return jobs.filter((job) => !done.has(job));
}

function idOf(line: unknown): string | null {
  const id = (line as { id?: unknown } | null)?.id;
  return typeof id === "string" && UUID.test(id) ? id : null;
}

async function lookUp(
  { store }: EngineContext,
  jobs: readonly Job[],
  results: ImportedLine[],
): Promise<void> {
  const rows = await rowsOf(
    store,
    jobs.map(({ parsed }) => parsed.id),
  );
  const seen = new Set<JobId>();
  for (const {
    index,
    parsed: { id },
  } of jobs) {
    const row = rows.get(id);
    const isKnown = seen.has(id) || (row !== undefined && !row.isImporting);
    results[index] = { status: isKnown ? "exists" : "created", id };
    seen.add(id);
  }
}

type StoredJob = Pick<JobRow, "fence" | "rev" | "queue"> & { readonly isImporting: boolean };

/** What an import needs to know of stored jobs. Their documents may be large, so they are not read. */
async function rowsOf(store: EngineContext["store"], ids: readonly JobId[]): Promise<Map<JobId, StoredJob>> {
  const rows = new Map<JobId, StoredJob>();
  for await (const row of loadInParts(store, ids, { isBrief: true })) {
    if (!row) continue;
    const { id, fence, rev, queue, options } = row;
    rows.set(id, { fence, rev, queue, isImporting: options?.importing !== undefined });
  }
  return rows;
}

async function storeJobs(
  context: EngineContext,
  jobs: readonly Job[],
  results: ImportedLine[],
  options: ImportOptions,
): Promise<void> {
  if (jobs.length === 0) return;
  const answers = await enqueueAll(
    context,
    jobs.map(({ made, fence }) => ({ ...made.job, fence })),
    options,
  );
  await storeWithoutKey(context, jobs, answers, options);
  const stored = jobs.filter((_, at) => typeof answers[at] === "string").map(({ parsed }) => parsed.id);
  if (options.remember !== undefined && stored.length > 0)
    await changeMemory(context, options.remember, stored, []);
  const completed = await complete(context, jobs, answers, options);
  for (const [at, { index, parsed }] of jobs.entries()) {
    const answer = answers[at] as Enqueued;
    const { id } = parsed;
    if (typeof answer === "object")
      results[index] = {
        status: "duplicate",
        id,
        message: `job ${id}: live job ${answer.duplicate} holds its unique key; end that job, or leave this one out`,
      };
    else results[index] = { status: answer === "created" || completed.has(id) ? "created" : "exists", id };
  }
  // Jobs with a limit ask for admission in the next sweep.
  context.wakeSweepAt(context.clock.now());
}

/** Bounds of queues are not applied: the jobs were accepted once. */
function enqueueAll(
  { store, clock }: EngineContext,
  jobs: readonly NewJob[],
  { tx }: ImportOptions,
): Promise<Enqueued[]> {
  return store.jobs.enqueue(jobs, { now: clock.now(), tx });
}

/** An ended job holds no key. If a live job has it, the ended one is stored without: it could not take it back. */
async function storeWithoutKey(
  context: EngineContext,
  jobs: readonly Job[],
  answers: Enqueued[],
  options: ImportOptions,
): Promise<void> {
  const again = jobs.flatMap(({ parsed, made, fence }, at) => {
    if (typeof answers[at] !== "object" || !isTerminal(parsed.row.state)) return [];
    const { uniqueKey: _key, ...job } = made.job;
    return [{ at, job: { ...job, fence } }];
  });
  if (again.length === 0) return;
  const given = await enqueueAll(
    context,
    again.map(({ job }) => job),
    options,
  );
  for (const [index, { at }] of again.entries()) answers[at] = given[index] as Enqueued;
}

/** Writes the second part of jobs that need one: of those just added, and of those that an earlier import left so. */
async function complete(
  context: EngineContext,
  jobs: readonly Job[],
  answers: readonly Enqueued[],
  { tx }: ImportOptions,
): Promise<ReadonlySet<JobId>> {
  const open = jobs.flatMap((job, at) =>
    job.made.completion !== null && typeof answers[at] === "string" ? [{ ...job, answer: answers[at] }] : [],
  );
  // Jobs that were just added need not be read: nothing writes them while they are marked. Inside the caller's
  // transaction they could not be read.
  const known = open.filter(({ answer }) => answer !== "created");
  const rows = await rowsOf(
    context.store,
    known.map(({ parsed }) => parsed.id),
  );
  const units = new Map<JobId, Unit>();
  for (const { parsed, made, fence, answer } of open) {
    const { id, row } = parsed;
    const stored = answer === "created" ? { fence, rev: 0 } : rows.get(id);
    if (stored === undefined || made.completion === null) continue;
    if ("isImporting" in stored && !stored.isImporting) continue;
    const job = { id, fence: stored.fence, rev: stored.rev, ...made.completion };
    const isReady = made.completion.image.state === "available";
    units.set(id, isReady ? { job, effects: [{ ready: row.queue }] } : { job });
  }
  const outcomes = await commitUnits(context, [...units.values()], { tx });
  return new Set([...units.keys()].filter((_id, index) => outcomes[index]?.ok));
}

const MOST_HOLDERS = 100;

function parseKey(line: unknown): Omit<Key, "index"> {
  refuseUnknownKeys(line, "unique", ["kind", "key", "holders"]);
  const { key, holders } = line as Record<string, unknown>;
  const isKey = typeof key === "string" && key !== "" && key.length <= NAME_LIMIT && key.isWellFormed();
  if (!isKey || key.includes("\0"))
    throw refuse("invalid_option", "unique.key", key, `use a text of 1 to ${NAME_LIMIT} characters`);
  if (!Array.isArray(holders) || holders.length === 0 || holders.length > MOST_HOLDERS)
    throw refuse("invalid_option", "unique.holders", holders, `use a list of 1 to ${MOST_HOLDERS} holders`);
  return { key, holders: holders.map((holder, index) => parseHolder(holder, `unique.holders[${index}]`)) };
}

function parseHolder(holder: unknown, field: string): UniqueHolder {
  refuseUnknownKeys(holder, field, ["id", "at", "until", "countsEnded", "since", "dueAt"]);
  const { id, at, until, countsEnded, since, dueAt } = holder as Record<string, unknown>;
  if (typeof id !== "string" || !UUID.test(id))
    throw refuse("invalid_option", `${field}.id`, id, "use a lower-case UUID");
  if (typeof countsEnded !== "boolean")
    throw refuse("invalid_option", `${field}.countsEnded`, countsEnded, "use true or false");
  const end = until === null ? null : parseInstant(until, `${field}.until`);
  const made = { id, at: parseInstant(at, `${field}.at`), until: end, countsEnded };
  if (since === undefined && dueAt === undefined) return made;
  const paced = {
    since: parseInstant(since, `${field}.since`),
    dueAt: parseInstant(dueAt, `${field}.dueAt`),
  };
  return { ...made, paced };
}

/** Adds holders to the record of a key, beside those that it has. Repeated, it changes nothing. */
async function storeKey(context: EngineContext, { key, holders }: Key): Promise<void> {
  const record: RecordKey = [UNIQUE, key];
  for (let tries = 0; tries < STALE_TRIES; tries++) {
    const [stored = null] = await context.store.records.load([record]);
    const known = stored ? holdersIn(stored.body) : [];
    const added = holders.filter(({ id }) => known.every((one) => one.id !== id));
    if (added.length === 0) return;
    const all = [...known, ...added].sort((a, b) => a.at - b.at).slice(-MOST_HOLDERS);
    const put = { put: record, ...holderRecord(all, context.clock.now()) };
    const unit: Unit = { when: [{ record, version: stored?.version ?? 0 }], effects: [put] };
    const [outcome] = await commitUnits(context, [unit]);
    if (outcome?.ok) return;
  }
  throw tooManyChanges("import", `unique key ${JSON.stringify(key)}`);
}
