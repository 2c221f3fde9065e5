import { z } from "zod";
import type { CronOptions } from "../../core/cron/cron.ts";
import type { ScheduleOptions } from "../../core/cron/expression.ts";
import type { PortableDefinition } from "../../core/job/portable.ts";
import type { InstantInput } from "../../core/time.ts";
import type { CronInput } from "../../engine/crons/crons.ts";
import { call, definitionOf, options, text } from "./call.ts";

const name = z.tuple([text]);

type Put = Omit<CronInput<unknown>, "job"> & { readonly job: PortableDefinition };

export const cronCalls = {
  "crons.put": call(
    "Add or change a cron",
    z.tuple([text, options<Put>()]),
    ({ engine, by }, cron, { job, ...input }) =>
      engine.crons.as(by).put(cron, { ...input, job: definitionOf(job) } as CronInput<unknown>),
  ),
  "crons.update": call(
    "Change when a cron fires",
    z.tuple([text, options<Partial<CronOptions>>()]),
    ({ engine, by }, cron, changes) => engine.crons.as(by).update(cron, changes),
  ),
  "crons.pause": call("Pause a cron", name, ({ engine, by }, cron) => engine.crons.as(by).pause(cron)),
  "crons.resume": call("Resume a cron", name, ({ engine, by }, cron) => engine.crons.as(by).resume(cron)),
  "crons.trigger": call("Enqueue the job of a cron now", name, async ({ engine, by }, cron) => {
    const { id } = await engine.crons.as(by).trigger(cron);
    return id;
  }),
  "crons.delete": call("Delete a cron", name, ({ engine, by }, cron) => engine.crons.as(by).delete(cron)),
  "crons.get": call("Load a cron", name, ({ engine }, cron) => engine.crons.get(cron)),
  "crons.list": call(
    "List crons",
    z.tuple([options<{ after?: string; limit?: number }>().optional()]),
    ({ engine }, page) => engine.crons.list(page),
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
