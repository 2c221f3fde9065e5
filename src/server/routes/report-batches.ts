import { UUID } from "../../core/ids.ts";
import type { Report, Reported } from "../../engine/remote/report-types.ts";
import { settledBrief } from "../../ojs/write-job.ts";
import type { Identity } from "../access/auth.ts";
import { asHttpError, errorText, notFound } from "../http/failures.ts";
import type { HttpError } from "../http/http-error.ts";
import { type Reply, type Route, type RouteCall, type RouteContext, reply, route } from "../route.ts";
import { settledManyReplySchema } from "../wire/replies.ts";
import { readFailure, readSuccess, senderOf } from "../wire/report.ts";
import { failManySchema, succeedManySchema } from "../wire/schemas.ts";
import { counted } from "./workers.ts";

type Said = Parameters<typeof senderOf>[0] & { readonly job_id: string };
type What = "ack" | "nack";

interface Many<Item extends Said> {
  readonly worker_id?: string | null | undefined;
  readonly jobs: readonly Item[];
}

/** Reads a report, or returns the error of an invalid one. */
function understood<Item extends Said>(
  said: Item,
  worker: string | null | undefined,
  read: (said: Item) => Report["event"],
  { identity, context }: { readonly identity: Identity; readonly context: RouteContext },
): Report | HttpError {
  try {
    if (!UUID.test(said.job_id)) throw notFound("job", said.job_id);
    const sender = senderOf({ ...said, worker_id: said.worker_id ?? worker }, identity, context);
    return { id: said.job_id, sender, event: read(said) };
  } catch (error) {
    return asHttpError(error);
  }
}

/** Decides each report alone. All are sent at once, so they share commits. */
async function settle<Item extends Said>(
  what: What,
  { body, requestId, identity }: Pick<RouteCall<Many<Item>>, "body" | "requestId" | "identity">,
  read: (said: Item) => Report["event"],
  context: RouteContext,
): Promise<Reply> {
  const { service, logger } = context;
  const reports = body.jobs.map((said) => understood(said, body.worker_id, read, { identity, context }));
  const sound = reports.filter((report) => "event" in report);
  const judged = await service.reportMany(sound);
  const outcomes = new Map(sound.map((report, index) => [report, judged[index]] as const));
  let refused = 0;
  const results = reports.map((report, index) => {
    const id = (body.jobs[index] as Item).job_id;
    try {
      if (!("event" in report)) throw report;
      const outcome = outcomes.get(report) as PromiseSettledResult<Reported>;
      if (outcome.status === "rejected") throw outcome.reason;
      return settledBrief(counted(id, report.sender, outcome.value, what));
    } catch (thrown) {
      refused += 1;
      const error = asHttpError(thrown);
      if (error.status >= 500) logger.error({ error: thrown, requestId, job: id }, "report failed");
      const head = JSON.stringify({ job_id: id, status: error.status });
      return `${head.slice(0, -1)},${errorText(error, requestId).slice(1)}`;
    }
  });
  return reply(200, `{"results":[${results.join(",")}],"count":${results.length},"refused":${refused}}`);
}

const MANY = {
  scope: "tenant",
  tag: "workers",
  reply: settledManyReplySchema,
  replies: { 200: "The result of each report; a refused one does not affect the others" },
} as const;

const ackMany = route("POST", "/ojs/v1/workers/ack/batch", "work", {
  ...MANY,
  summary: "Report that jobs succeeded, each decided alone",
  body: succeedManySchema,
  run(call, context) {
    const { documentLimit } = context.service;
    return settle("ack", call, (said) => readSuccess(said, documentLimit), context);
  },
});

const nackMany = route("POST", "/ojs/v1/workers/nack/batch", "work", {
  ...MANY,
  summary: "Report that jobs failed or are given back, each decided alone",
  body: failManySchema,
  run(call, context) {
    const now = context.engine.now();
    return settle("nack", call, (said) => readFailure(said, now), context);
  },
});

export const reportBatchRoutes: readonly Route[] = [ackMany, nackMany];
