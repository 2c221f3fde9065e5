import { z } from "zod";
import type { QueueOptions } from "../../core/limit/queue-settings.ts";
import type { LimitChange } from "../../engine/queues/key-limits.ts";
import type { MaintenanceOptions } from "../../engine/queues/maintenance.ts";
import type { PurgeOptions } from "../../engine/queues/queues.ts";
import { bounds, call, options, ownName } from "./call.ts";

const none = z.tuple([]);
const queue = z.tuple([ownName]);
const key = z.tuple([ownName]);
const page = options<{ after?: string; limit?: number }>().optional();

export const queueCalls = {
  "queues.configure": call(
    "Change the settings of a queue",
    z.tuple([ownName, options<QueueOptions>()]),
    ({ engine, by }, name, settings) => engine.queues.configure(name, settings, by),
  ),
  "queues.reset": call("Delete the settings of a queue", queue, ({ engine, by }, name) =>
    engine.queues.reset(name, by),
  ),
  "queues.pause": call("Pause a queue", queue, ({ engine, by }, name) => engine.queues.pause(name, by)),
  "queues.resume": call("Resume a queue", queue, ({ engine, by }, name) => engine.queues.resume(name, by)),
  "queues.list": call("List queues", none, ({ engine }) => engine.queues.list()),
  "queues.describe": call("Describe a queue", queue, ({ engine }, name) => engine.queues.describe(name)),
  "queues.depth": call("Count the jobs of a queue", z.tuple([ownName.optional()]), ({ engine }, name) =>
    engine.queues.depth(name),
  ),
  "queues.unattended": call("List queues without a worker", none, ({ engine }) => engine.queues.unattended()),
  "queues.oldestWaits": call("List the oldest waits", none, ({ engine }) => engine.queues.oldestWaits()),
  "queues.purge": call(
    "Delete waiting jobs of a queue",
    z.tuple([ownName, options<Pick<PurgeOptions, "states">>().optional()]),
    async (host, name, said) => {
      const bound = bounds(host);
      const removed = await host.engine.queues.purge(name, { ...said, ...bound }, host.by);
      return { removed, isDone: !bound.signal.aborted };
    },
  ),
  "maintenance.status": call("Load the maintenance", none, ({ engine }) => engine.maintenance.status()),
  "maintenance.begin": call(
    "Begin a maintenance",
    z.tuple([options<MaintenanceOptions>().optional()]),
    ({ engine, by }, how) => engine.maintenance.begin(how, by),
  ),
  "maintenance.end": call("End the maintenance", none, ({ engine, by }) => engine.maintenance.end(by)),
  "limits.put": call(
    "Override the limit of a key",
    z.tuple([ownName, options<LimitChange>()]),
    ({ engine, by }, name, change) => engine.limits.put(name, change, by),
  ),
  "limits.delete": call("Delete the override of a key", key, ({ engine, by }, name) =>
    engine.limits.delete(name, by),
  ),
  "limits.get": call("Load the limit of a key", key, ({ engine }, name) => engine.limits.get(name)),
  "limits.list": call("List limits", z.tuple([page]), ({ engine }, asked) => engine.limits.list(asked)),
};
