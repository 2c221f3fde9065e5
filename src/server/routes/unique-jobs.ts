import { type UniqueKeyView, uniqueKeys } from "../../engine/enqueue/unique-keys.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import { HttpError } from "../http/http-error.ts";
import { json, type Route, route } from "../route.ts";
import { uniqueJobsReply } from "../wire/admin-replies.ts";
import { adminPageQuery } from "../wire/admin-schemas.ts";
import { pageRequestOf } from "../wire/pages.ts";

const MOST_SKIPPED = 5_000;
const STEP = 500;

function fieldsOf({ key, id, job, until }: UniqueKeyView) {
  return {
    key,
    job_id: id,
    type: job?.type ?? null,
    queue: job?.queue ?? null,
    state: job?.state ?? "gone",
    ...(until !== null && { locked_until: instantText(until) }),
  };
}

const list = route("GET", "/ojs/v1/unique-jobs", "read", {
  scope: "tenant",
  tag: "jobs",
  summary: "List unique keys in use, and the jobs that have them",
  reply: uniqueJobsReply,
  query: adminPageQuery,
  replies: { 200: "A page of keys in their order; a short page may not be the last" },
  async run({ query }, { engine }) {
    const { page, perPage, cursor, skipped } = pageRequestOf(query);
    if (skipped > MOST_SKIPPED)
      throw new HttpError(400, "invalid_request", "page: too far from the start; continue with cursor");
    const now = engine.now();
    const found: UniqueKeyView[] = [];
    let after = cursor;
    // Expired keys are skipped. The number of steps covers all skipped pages and one more.
    for (let steps = 0; steps <= MOST_SKIPPED / STEP && found.length < skipped + perPage; steps++) {
      const limit = Math.min(STEP, skipped + perPage - found.length);
      const some = await uniqueKeys(engine.store, { now, after, limit });
      found.push(...some.keys);
      after = some.cursor;
      if (after === null) break;
    }
    if (after !== null) {
      // The last page may end with a key. Check that keys follow it, so that no reader asks for an empty page.
      const next = await uniqueKeys(engine.store, { now, after, limit: 1 });
      if (next.keys.length === 0 && next.cursor === null) after = null;
    }
    return json(200, {
      items: found.slice(skipped).map(fieldsOf),
      pagination: {
        total: found.length + (after === null ? 0 : 1),
        total_is_exact: after === null && cursor === null,
        page,
        per_page: perPage,
        has_more: after !== null,
        next_cursor: after,
      },
    });
  },
});

export const uniqueJobRoutes: readonly Route[] = [list];
