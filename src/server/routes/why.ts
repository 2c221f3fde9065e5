import { json, type Route, route } from "../route.ts";
import { unattendedFields, unattendedReply, whyFields, whyReply } from "../wire/why.ts";
import { jobId } from "./job-actions.ts";

const whyBy = (path: string, tag: string): Route =>
  route("GET", path, "read", {
    scope: "tenant",
    tag,
    summary: "Why a job does not run, does not end, or ended as it did",
    reply: whyReply,
    replies: { 200: "The reasons, the one to act on first", 404: "There is no such job" },
    run: async ({ params }, { engine }) => json(200, whyFields(await engine.why(jobId(params)))),
  });

const unattended = route("GET", "/ojs/v1/admin/unattended-queues", "read", {
  scope: "tenant",
  tag: "admin",
  summary: "Queues with available jobs that no live worker takes",
  reply: unattendedReply,
  replies: { 200: "At most 100 queues, in the order of their names" },
  run: async (_call, { engine }) => json(200, unattendedFields(await engine.queues.unattended())),
});

export const whyRoutes: readonly Route[] = [
  whyBy("/ojs/v1/jobs/:id/why", "jobs"),
  whyBy("/ojs/v1/admin/jobs/:id/why", "admin"),
  unattended,
];
