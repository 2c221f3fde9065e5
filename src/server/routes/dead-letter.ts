import type { JobRow } from "../../core/job/job.ts";
import { json, type Route, route } from "../route.ts";
import { readTexts } from "../wire/job-page.ts";
import { deletedReplySchema, jobsReplySchema } from "../wire/replies.ts";
import { pageQuery } from "../wire/schemas.ts";
import { letterRoutesBy, plainRoutes } from "./job-actions.ts";
import { listReply } from "./jobs.ts";

const TAG = "dead letters";

const list = route({
  method: "GET",
  path: "/ojs/v1/dead-letter",
  right: "read",
  tag: TAG,
  summary: "List dead letters in the order in which they ended",
  reply: jobsReplySchema,
  query: pageQuery,
  replies: { 200: "A page of jobs" },
  async run({ query }, { engine, service }) {
    const { cursor, limit = 100 } = query;
    const read = (after: string | null, count: number) =>
      service.rows.find({ deadLetter: true }, { after, limit: count });
    const page = await readTexts(read, cursor ?? null, limit);
    // The last page may end with a cursor. Check that jobs follow it, so that no reader asks for an empty page.
    const next = page.cursor && (await read(page.cursor, 1));
    const hasMore = next ? next.jobs.length > 0 || next.cursor !== null : false;
    const { count, isComplete } = await engine.bulk.countSome({ deadLetter: true });
    const total = { total: count, total_is_exact: isComplete };
    return listReply({ texts: page.texts, cursor: hasMore ? page.cursor : null }, limit, total);
  },
});

const REMOVAL = {
  status: 200,
  reply: deletedReplySchema,
  show: (row: JobRow) => json(200, { deleted: true, job_id: row.id }),
} as const;

export const deadLetterRoutes: readonly Route[] = [
  list,
  ...letterRoutesBy("/ojs/v1/dead-letter", plainRoutes(TAG), REMOVAL),
];
