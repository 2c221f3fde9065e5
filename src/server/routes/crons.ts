import type { CronOptions } from "../../core/cron/cron.ts";
import type { CronView } from "../../engine/crons/crons.ts";
import { loadBrief } from "../../engine/find/bounded-reader.ts";
import { jobText } from "../../ojs/write-job.ts";
import { warned } from "../http/body-warnings.ts";
import { notFound } from "../http/failures.ts";
import { byKey, json, type Reply, type Route, type RouteContext, reply, routesOf } from "../route.ts";
import {
  cronChangeSchema,
  cronFields,
  cronHistoryQuery,
  cronReplySchema,
  cronSchema,
  cronsQuery,
  cronsReplySchema,
  readSchedule,
  readTemplate,
  runFields,
} from "../wire/cron.ts";
import { listedPage } from "../wire/pages.ts";
import { jobReplySchema } from "../wire/replies.ts";
import { emptySchema } from "../wire/schemas.ts";
import { versionWarnings } from "../wire/unknown-version.ts";

const route = routesOf({ tag: "crons", scope: "tenant" });

function cronReply(status: number, view: CronView): Reply {
  const cron = cronFields(view);
  return json(status, { ...cron, cron, cron_job: cron });
}

async function load(name: string | undefined, { engine }: RouteContext): Promise<CronView> {
  const view = name === undefined ? null : await engine.crons.get(name);
  if (!view) throw notFound("cron", name ?? "");
  return view;
}

const put = route("POST", "/ojs/v1/cron", "operate", {
  summary: "Add a cron, or change the one of this name",
  reply: cronReplySchema,
  body: cronSchema,
  replies: { 200: "The cron existed and is changed", 201: "It is there" },
  async run({ body, identity }, { engine, service }) {
    const crons = service.crons.as(byKey(identity));
    const options = readSchedule(body) as CronOptions;
    const isNew = (await engine.crons.get(body.name)) === null;
    const template = readTemplate(body, engine.now(), service.documentLimit);
    const view = await crons.putRemote(body.name, options, template);
    const shown = (found: CronView) =>
      warned(
        cronReply(isNew ? 201 : 200, found),
        versionWarnings(engine.schemas, template, body.job_template ? "job_template." : ""),
      );
    if (body.enabled === false) return shown(await crons.pause(body.name));
    if (body.enabled && view.isPaused) return shown(await crons.resume(body.name));
    return shown(view);
  },
});

const listBy = (path: string) =>
  route("GET", path, "read", {
    summary: "List crons in the order of their names",
    reply: cronsReplySchema,
    query: cronsQuery,
    replies: { 200: "A page of crons" },
    async run({ query }, { engine }) {
      const { enabled } = query;
      const { items, pagination } = await listedPage(query, {
        usual: 100,
        list: (after, limit) => engine.crons.list({ ...(after !== null && { after }), limit }),
        cursorOf: ({ name }) => name,
        isWanted: enabled && (({ isPaused }) => isPaused === (enabled === "false")),
      });
      const crons = items.map(cronFields);
      return json(200, { crons, cron_jobs: crons, items: crons, pagination });
    },
  });

const getBy = (path: string) =>
  route("GET", path, "read", {
    summary: "Look at a cron",
    reply: cronReplySchema,
    replies: { 200: "The cron", 404: "There is no cron of this name" },
    run: async ({ params }, context) => cronReply(200, await load(params.name, context)),
  });

const changeBy = (path: string) =>
  route("PATCH", path, "operate", {
    summary: "Change when a cron fires, or pause it with enabled: false",
    reply: cronReplySchema,
    body: cronChangeSchema,
    replies: { 200: "It is changed", 404: "There is no cron of this name" },
    async run({ params, body, identity }, context) {
      const { name, isPaused } = await load(params.name, context);
      const crons = context.engine.crons.as(byKey(identity));
      const changes = readSchedule(body);
      if (Object.keys(changes).length > 0) await crons.update(name, changes);
      if (body.enabled === false && !isPaused) await crons.pause(name);
      if (body.enabled === true && isPaused) await crons.resume(name);
      return cronReply(200, await load(name, context));
    },
  });

const removeBy = (path: string) =>
  route("DELETE", path, "operate", {
    summary: "Delete a cron; its jobs stay",
    reply: cronReplySchema,
    replies: { 200: "It is gone", 404: "There is no cron of this name" },
    async run({ params, identity }, context) {
      const view = await load(params.name, context);
      await context.engine.crons.as(byKey(identity)).delete(view.name);
      const cron = cronFields(view);
      return json(200, { deleted: true, name: view.name, cron, cron_job: cron });
    },
  });

const pause = (action: "pause" | "resume") =>
  route("POST", `/ojs/v1/cron/:name/${action}`, "operate", {
    summary: action === "pause" ? "Stop a cron" : "Resume a paused cron from now on",
    reply: cronReplySchema,
    body: emptySchema,
    replies: { 200: "Done", 404: "There is no cron of this name" },
    async run({ params, identity }, context) {
      const { name } = await load(params.name, context);
      return cronReply(200, await context.engine.crons.as(byKey(identity))[action](name));
    },
  });

const trigger = route("POST", "/ojs/v1/cron/:name/trigger", "operate", {
  summary: "Enqueue the job of a cron at once",
  reply: jobReplySchema,
  body: emptySchema,
  replies: { 201: "The job", 404: "There is no cron of this name" },
  async run({ params, identity }, context) {
    const { name } = await load(params.name, context);
    const { id } = await context.engine.crons.as(byKey(identity)).trigger(name);
    const row = await context.service.rows.load(id);
    if (!row) throw notFound("job", id);
    return reply(201, `{"job_id":"${id}","job":${jobText(row)}}`);
  },
});

const history = route("GET", "/ojs/v1/cron/:name/history", "read", {
  summary: "The last runs of a cron with the skipped ones, newest first",
  query: cronHistoryQuery,
  replies: { 200: "The runs", 404: "There is no cron of this name" },
  async run({ params, query }, context) {
    const found = await load(params.name, context);
    const view = { ...found, runs: found.runs.slice(0, query.limit) };
    const ids = view.runs.flatMap(({ job }) => (job === undefined ? [] : [job]));
    const rows = ids.length === 0 ? [] : await loadBrief(context.engine.store, ids);
    const runs = runFields(view, new Map(rows.flatMap((row) => (row ? [[row.id, row] as const] : []))));
    return json(200, { runs, items: runs, executions: runs.filter(({ job_id }) => job_id !== null) });
  },
});

/** The official admin page says `crons`, all other clients `cron`. */
export const cronRoutes: readonly Route[] = [
  put,
  ...["/ojs/v1/cron", "/ojs/v1/crons"].flatMap((path) => [
    listBy(path),
    getBy(`${path}/:name`),
    changeBy(`${path}/:name`),
    removeBy(`${path}/:name`),
  ]),
  pause("pause"),
  pause("resume"),
  trigger,
  history,
];
