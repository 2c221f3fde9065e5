import { z } from "zod";
import { checkCount, refuse } from "../../core/errors.ts";
import type { PortableDefinition } from "../../core/job/transfer/portable.ts";
import type { Duration } from "../../core/time.ts";
import { decodeHeaders } from "../../core/timeout/timeout-headers.ts";
import type { When } from "../../core/timeout/when.ts";
import type { EnqueueLaterOptions } from "../../engine/dispatch/engine-timeouts.ts";
import { JOB_DESTINATION } from "../../engine/dispatch/job-destination.ts";
import type { CalendarOptions, ClaimedTimeout } from "../../engine/dispatch/timeout-api.ts";
import type { Timeout } from "../../engine/dispatch/timeout-view.ts";
import { isSagaDestination } from "../../engine/sagas/saga-addresses.ts";
import { type SentTimeout, writeTimeout } from "../../ojs/timeout-fields.ts";
import { BATCH_LIMIT } from "../../ports/store.ts";
import { CLAIM_BATCH, type TimeoutFilter, type Which } from "../../ports/timeouts.ts";
import { limiter } from "../wire/job-page.ts";
import { visiblePayload } from "../wire/timeouts.ts";
import { type CallDeps, call, definitionOf, JsonText, json, options, text } from "./call.ts";
import { readAll, readInSteps } from "./read-in-steps.ts";

/** A text that every store can keep. */
const name = text.regex(/^[^\p{Cc}\p{Cs}]*$/u, { error: "use a text without control characters" });
const id = z.tuple([name]);
const saga = z.tuple([name, name]);
const filter = z.strictObject({
  destination: name.optional(),
  saga: saga.optional(),
  isDead: z.boolean().optional(),
  hasWallClock: z.literal(true).optional(),
}) as unknown as z.ZodType<TimeoutFilter>;
const which = z.union([
  z.strictObject({ id: name }),
  z.strictObject({ saga, key: name.optional() }),
  z.strictObject({ destination: name, key: name }),
]) as unknown as z.ZodType<Which>;
const page = z.strictObject({
  after: name.optional(),
  limit: z.int().min(1).max(1_000).optional(),
}) as unknown as z.ZodType<{ after?: string; limit?: number }>;
const none = z.tuple([]);
const owner = z.union([name, z.null()]);

/** A timeout as people may see it: that of a delayed job has the job's payload. */
function shown(timeout: Timeout) {
  return writeTimeout({ ...timeout, payload: visiblePayload(timeout) });
}

/** Whether the engine itself delivers to it. What is no text has no destination; the engine refuses it. */
function isEngines(destination: unknown): boolean {
  if (typeof destination !== "string") return false;
  return destination === JOB_DESTINATION || isSagaDestination(destination);
}

/** Rows of these destinations are made by the engine. Others could forge what a saga or a job gets. */
function inputOf({ headers, ...input }: SentTimeout) {
  const { destination } = input;
  if (isEngines(destination))
    throw refuse(
      "invalid_name",
      "timeout.destination",
      destination,
      "use another name: timeouts.enqueue and send make timeouts for jobs and sagas",
    );
  return { ...input, ...(typeof headers === "string" && { headers: decodeHeaders(headers) }) };
}

function isSagaWhich(which: Which): boolean {
  if ("saga" in which) return ["saga", "mail"].includes(which.saga[0]) && which.saga[1].startsWith("[");
  return "destination" in which && isSagaDestination(which.destination);
}

/** A producer cancels what it has enqueued. Timeouts of a saga are the saga's: an operator revokes them. */
async function cancel({ engine, by }: CallDeps, which: Which): Promise<unknown> {
  const found = "id" in which ? await engine.timeouts.get(which.id) : null;
  if (isSagaWhich(which) || (found && isSagaDestination(found.destination)))
    throw refuse("invalid_option", "which", which, "use timeouts.revoke: it is a timeout of a saga");
  return engine.timeouts.cancelAs(which, by);
}

interface ClaimOptions {
  readonly limit?: number;
  readonly lease?: Duration;
  readonly destinations?: string[];
}

/** The most characters of payloads that one claim hands out. */
const MOST_CLAIMED = 8_000_000;
/** Timeouts of the first claim of an engine, the most of one, and how many characters the next one may have. */
const FIRST_CLAIMED = 8;
const MOST_AT_ONCE = 50;
const CLAIM_SIZE = 2_000_000;
const claimSteps = new WeakMap<object, number>();
/** Claims at once. They do not wait for the pages of people. */
const claiming = limiter(4);

/** A claim without destinations would lease timeouts of jobs and sagas too, and hold them up. */
function ownDestinations({ destinations }: ClaimOptions = {}): void {
  const isList = Array.isArray(destinations) && destinations.length > 0;
  if (!isList || destinations.some(isEngines))
    throw refuse(
      "invalid_option",
      "options.destinations",
      destinations,
      "name the destinations whose timeouts you handle; the engine delivers those of jobs and sagas",
    );
}

/**
 * Claims in steps, and gives back at once what does not fit into a reply. A refused reply would hold all of it for a
 * lease. The sizes of the last claim say how many the next one may take, so small timeouts need few steps.
 */
async function claimedWithin({ engine }: CallDeps, how: ClaimOptions = {}): Promise<JsonText> {
  ownDestinations(how);
  const { limit = CLAIM_BATCH } = how;
  checkCount(limit, "limit", BATCH_LIMIT);
  const texts: string[] = [];
  let length = 0;
  while (texts.length < limit) {
    const step = claimSteps.get(engine) ?? FIRST_CLAIMED;
    const asked = Math.min(limit - texts.length, step);
    const claimed = await engine.timeouts.claimDue({ ...how, limit: asked });
    const given: ClaimedTimeout[] = [];
    let size = 0;
    for (const timeout of claimed) {
      const text = JSON.stringify(shown(timeout));
      size += text.length;
      const fits = texts.length === 0 || length + text.length <= MOST_CLAIMED;
      if (fits && given.length === 0) {
        texts.push(text);
        length += text.length;
      } else given.push(timeout);
    }
    await Promise.all(given.map(({ id, owner }) => engine.timeouts.release(id, owner)));
    if (claimed.length > 0) claimSteps.set(engine, nextClaim(step, size / claimed.length));
    if (claimed.length < asked || given.length > 0) break;
  }
  return new JsonText(`[${texts.join(",")}]`);
}

function nextClaim(step: number, average: number): number {
  return Math.max(1, Math.min(4 * step, MOST_AT_ONCE, Math.floor(CLAIM_SIZE / average)));
}

/** A page by due instant. One that is full ends early, and its cursor continues. */
async function calendar({ engine }: CallDeps, asked: CalendarOptions = {}) {
  let cursor = asked.after ?? null;
  const { items } = await readInSteps<Timeout>(
    asked.limit ?? 100,
    async (_last, limit) => {
      const page = await engine.timeouts.calendar({ ...asked, after: cursor, limit });
      cursor = page.cursor;
      return { items: page.timeouts, isLast: cursor === null };
    },
    MOST_CLAIMED,
  );
  return { timeouts: items.map(shown), cursor };
}

/** Refuses timeouts of jobs and sagas: the engine delivers these, and a worker must not lose or delay them. */
async function refuseEngines({ engine }: CallDeps, id: string): Promise<void> {
  const found = await engine.timeouts.get(id);
  if (found?.destination === JOB_DESTINATION || (found && isSagaDestination(found.destination)))
    throw refuse("invalid_option", "id", id, "leave it to the engine: it is a timeout of a job or a saga");
}

/** Each is made due by itself, because only that writes to the audit. */
async function requeue({ engine, by }: CallDeps, ids: readonly string[]): Promise<number> {
  let revived = 0;
  for (const one of ids) {
    try {
      await engine.timeouts.revive(one, by);
      revived += 1;
    } catch (error) {
      const { code } = error as { readonly code?: unknown };
      if (code !== "not_found" && code !== "invalid_state") throw error;
    }
  }
  return revived;
}

export const timeoutCalls = {
  "timeouts.insert": call(
    "Store timeouts",
    z.tuple([z.array(options<SentTimeout>()).max(500)]),
    ({ engine }, sent) => engine.timeouts.insertMany(sent.map(inputOf)),
  ),
  "timeouts.enqueue": call(
    "Enqueue a job at an instant",
    z.tuple([options<PortableDefinition>(), json, options<EnqueueLaterOptions>()]),
    ({ engine }, job, payload, how) => engine.timeouts.enqueue(definitionOf(job), payload, how),
  ),
  "timeouts.get": call("Load a timeout", id, async ({ engine }, timeout) => {
    const found = await engine.timeouts.get(timeout);
    return found && shown(found);
  }),
  "timeouts.calendar": call(
    "List timeouts by their due instant",
    z.tuple([options<CalendarOptions>().optional()]),
    calendar,
  ),
  "timeouts.list": call(
    "List timeouts by id",
    z.tuple([filter.optional(), page.optional()]),
    async ({ engine }, said, { after, limit = 100 } = {}) => {
      const read = (last: Timeout | undefined, step: number) => {
        const from = last?.id ?? after;
        return engine.timeouts.list(said, { ...(from !== undefined && { after: from }), limit: step });
      };
      return (await readAll(limit, read)).map(shown);
    },
  ),
  "timeouts.cancel": call("Cancel timeouts", z.tuple([which]), cancel),
  "timeouts.revoke": call("Revoke a timeout", id, ({ engine, by }, timeout) =>
    engine.timeouts.revoke(timeout, by),
  ),
  "timeouts.reschedule": call(
    "Move a timeout",
    z.tuple([name, json]),
    async ({ engine, by }, timeout, when) =>
      shown(await engine.timeouts.reschedule(timeout, when as When, by)),
  ),
  "timeouts.revive": call("Make a dead timeout due", id, async ({ engine, by }, timeout) =>
    shown(await engine.timeouts.revive(timeout, by)),
  ),
  "timeouts.requeue": call("Make dead timeouts due", z.tuple([z.array(name).max(1_000)]), requeue),
  "timeouts.nextDueAt": call("Find the next due instant", none, ({ engine }) => engine.timeouts.nextDueAt()),
  "timeouts.count": call("Count timeouts", none, ({ engine }) => engine.timeouts.count()),
  "timeouts.claimDue": call(
    "Lease due timeouts",
    z.tuple([options<ClaimOptions>().optional()]),
    (host, how) => claiming(() => claimedWithin(host, how)),
  ),
  "timeouts.remove": call("Remove a leased timeout", z.tuple([name, owner]), async (host, timeout, by) => {
    await refuseEngines(host, timeout);
    return host.engine.timeouts.remove(timeout, by ?? undefined);
  }),
  "timeouts.release": call(
    "Release a leased timeout",
    z.tuple([name, owner, options<{ after?: Duration; error?: string }>().optional()]),
    async (host, timeout, by, how) => {
      await refuseEngines(host, timeout);
      return host.engine.timeouts.release(timeout, by ?? undefined, how);
    },
  ),
  "timeouts.extend": call(
    "Extend a lease",
    z.tuple([name, name, options<{ lease?: Duration }>().optional()]),
    async (host, timeout, by, how) => {
      await refuseEngines(host, timeout);
      return host.engine.timeouts.extend(timeout, by, how);
    },
  ),
  "timeouts.reap": call("Free expired leases", none, ({ engine }) => engine.timeouts.reap()),
};
