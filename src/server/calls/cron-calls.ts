import { z } from "zod";
import type { CronOptions } from "../../core/cron/cron.ts";
import type { ScheduleOptions } from "../../core/cron/expression.ts";
import { pathsWithin, visibleOptions } from "../../core/job/documents/redaction.ts";
import type { PortableDefinition } from "../../core/job/transfer/portable.ts";
import { redactValue } from "../../core/redact.ts";
import type { InstantInput } from "../../core/time.ts";
import type { CronInput, CronView } from "../../engine/crons/crons.ts";
import { call, definitionOf, options, text } from "./call.ts";
import { readAll } from "./read-in-steps.ts";

const name = z.tuple([text]);

/** A cron as people may see it. */
function shown(view: CronView): CronView {
  const payload = redactValue(view.payload, pathsWithin(view.redact, "payload")) as CronView["payload"];
  return { ...view, payload, options: visibleOptions(view.options, view.redact) };
}

type Put = Omit<CronInput<unknown>, "job"> & { readonly job: PortableDefinition };

export const cronCalls = {
  "crons.put": call(
    "Add or change a cron",
    z.tuple([text, options<Put>()]),
    async ({ engine, by }, cron, { job, ...input }) => {
      const sent = { ...input, job: definitionOf(job) } as CronInput<unknown>;
      return shown(await engine.crons.as(by).put(cron, sent));
    },
  ),
  "crons.update": call(
    "Change when a cron fires",
    z.tuple([text, options<Partial<CronOptions>>()]),
    async ({ engine, by }, cron, changes) => shown(await engine.crons.as(by).update(cron, changes)),
  ),
  "crons.pause": call("Pause a cron", name, async ({ engine, by }, cron) =>
    shown(await engine.crons.as(by).pause(cron)),
  ),
  "crons.resume": call("Resume a cron", name, async ({ engine, by }, cron) =>
    shown(await engine.crons.as(by).resume(cron)),
  ),
  "crons.trigger": call("Enqueue the job of a cron now", name, async ({ engine, by }, cron) => {
    const { id } = await engine.crons.as(by).trigger(cron);
    return id;
  }),
  "crons.delete": call("Delete a cron", name, ({ engine, by }, cron) => engine.crons.as(by).delete(cron)),
  "crons.get": call("Load a cron", name, async ({ engine }, cron) => {
    const found = await engine.crons.get(cron);
    return found && shown(found);
  }),
  "crons.list": call(
    "List crons",
    z.tuple([options<{ after?: string; limit?: number }>().optional()]),
    async ({ engine }, { after, limit = 100, ...rest } = {}) => {
      const read = (last: CronView | undefined, step: number) => {
        const from = last?.name ?? after;
        return engine.crons.list({ ...rest, ...(from !== undefined && { after: from }), limit: step });
      };
      return (await readAll(limit, read)).map(shown);
    },
  ),
  "crons.preview": call(
    "List the next instants of a cron",
    z.tuple([
      z.union([text, options<ScheduleOptions>()]),
      options<{ count?: number; from?: InstantInput }>().optional(),
    ]),
    ({ engine }, cron, how) => engine.crons.preview(cron, how),
  ),
};
