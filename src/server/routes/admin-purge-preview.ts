import { z } from "zod";
import { readInstant } from "../../ojs/wire-durations.ts";
import { bounded } from "../http/bounded.ts";
import { json, type Route, route } from "../route.ts";
import { queueOf } from "../wire/queues.ts";
import { instant } from "../wire/replies.ts";

const ENDED = ["completed", "discarded", "cancelled"] as const;
/** A count stops after this many milliseconds and says that there may be more. */
const LONGEST = 10_000;

const previewQuery = z.looseObject({
  states: z
    .string()
    .max(100)
    .transform((text) => text.split(","))
    .pipe(z.array(z.enum(ENDED)).min(1))
    .meta({ description: "States that have ended, with commas between them." }),
  older_than: instant.optional().meta({ description: "Only jobs that ended before this instant." }),
});

const previewReply = z
  .looseObject({
    queue: z.string(),
    states: z.array(z.enum(ENDED)),
    matched: z.int().min(0),
    is_complete: z.boolean().meta({ description: "False: the count took too long, and there may be more." }),
  })
  .meta({ id: "PurgePreview" });

const preview = route("GET", "/ojs/v1/admin/queues/:queue/purge-preview", "read", {
  scope: "tenant",
  tag: "queues",
  summary: "Count the ended jobs that a purge of a queue would delete",
  reply: previewReply,
  query: previewQuery,
  replies: { 200: "How many" },
  async run({ params, query, isGone }, { engine, service }) {
    const queue = queueOf(params);
    const before = query.older_than && {
      finishedBefore: { epochMilliseconds: readInstant(query.older_than, engine.now(), "older_than") },
    };
    let matched = 0;
    let isComplete = true;
    const options = { dryRun: true, ...bounded(service.system, isGone, LONGEST) };
    for (const state of query.states) {
      const result = await engine.bulk.delete({ queue, state, ...before }, options);
      matched += result.matched;
      isComplete &&= result.isComplete;
    }
    return json(200, { queue, states: query.states, matched, is_complete: isComplete });
  },
});

export const adminPurgePreviewRoutes: readonly Route[] = [preview];
