import type { JobRow } from "../../core/job/job.ts";
import { json, type Route, route } from "../route.ts";
import { deadLettersQuery } from "../wire/admin-schemas.ts";
import { readFilter } from "../wire/filter.ts";
import { countOwn } from "../wire/internal-jobs.ts";
import { readTexts } from "../wire/job-page.ts";
import { cursorAfter, cursorOfMore, pageRequestOf } from "../wire/pages.ts";
import { deletedReplySchema, jobsReplySchema } from "../wire/replies.ts";
import { manyLetterRoutesBy } from "./admin-dead-letters.ts";
import { letterRoutesBy, plainRoutes } from "./job-actions.ts";
import { listReply } from "./jobs.ts";

const TAG = "dead letters";
const PATH = "/ojs/v1/dead-letter";
const PER_PAGE = 100;

const list = route("GET", PATH, "read", {
  scope: "tenant",
  tag: TAG,
  summary: "List dead letters in the order in which they ended",
  reply: jobsReplySchema,
  query: deadLettersQuery,
  replies: { 200: "A page of jobs" },
  async run({ query }, { engine, service }) {
    const { perPage, cursor, skipped } = pageRequestOf(query, PER_PAGE);
    const filter = { ...readFilter(query, engine.now()), deadLetter: true };
    const read = (after: string | null, count: number) => service.rows.find(filter, { after, limit: count });
    const from = cursor ?? (await cursorAfter(skipped, read));
    const page = from === "end" ? { texts: [], cursor: null } : await readTexts(read, from, perPage);
    const next = await cursorOfMore(read, page.cursor);
    const { count, isComplete } = await countOwn(engine, filter);
    const total = { total: count, total_is_exact: isComplete };
    return listReply({ texts: page.texts, cursor: next }, perPage, { ...total, offset: skipped });
  },
});

const REMOVAL = {
  status: 200,
  reply: deletedReplySchema,
  show: (row: JobRow) => json(200, { deleted: true, job_id: row.id }),
} as const;

export const deadLetterRoutes: readonly Route[] = [
  list,
  ...manyLetterRoutesBy(PATH, TAG),
  ...letterRoutesBy(PATH, plainRoutes(TAG), REMOVAL),
];
