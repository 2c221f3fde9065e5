import { preparePayload } from "../core/job/enqueue/envelope.ts";
import { assertDefinition } from "../core/job/job-definition.ts";
import { portableDefinition, portableOptions } from "../core/job/transfer/portable.ts";
import type { CronInput } from "../engine/crons/crons.ts";
import type { CronsApi, LimitsApi, MaintenanceApi, QueuesApi } from "../engine/curfew-api.ts";
import type { Caller } from "./caller.ts";
import { RemoteJobHandle } from "./remote-job-handle.ts";

export function remoteQueues(caller: Caller): QueuesApi {
  return {
    configure: (queue, options) => caller.call("queues.configure", [queue, options]),
    reset: (queue) => caller.call("queues.reset", [queue]),
    pause: (queue) => caller.call("queues.pause", [queue]),
    resume: (queue) => caller.call("queues.resume", [queue]),
    list: () => caller.call("queues.list", []),
    describe: (queue) => caller.call("queues.describe", [queue]),
    depth: (queue) => caller.call("queues.depth", [queue]),
    unattended: () => caller.call("queues.unattended", []),
    oldestWaits: () => caller.call("queues.oldestWaits", []),
    async purge(queue, options = {}) {
      const { signal, onProgress, ...sent } = options;
      let removed = 0;
      while (!signal?.aborted) {
        const step = await caller.call<{ removed: number; isDone: boolean }>("queues.purge", [queue, sent]);
        removed += step.removed;
        if (step.removed > 0) onProgress?.(removed);
        if (step.isDone) break;
      }
      return removed;
    },
  };
}

export function remoteMaintenance(caller: Caller): MaintenanceApi {
  return {
    status: () => caller.call("maintenance.status", []),
    begin: (options) => caller.call("maintenance.begin", [options]),
    end: () => caller.call("maintenance.end", []),
  };
}

export function remoteLimits(caller: Caller): LimitsApi {
  return {
    put: (key, change) => caller.call("limits.put", [key, change]),
    delete: (key) => caller.call("limits.delete", [key]),
    get: (key) => caller.call("limits.get", [key]),
    list: (page) => caller.call("limits.list", [page]),
  };
}

export function remoteCrons(caller: Caller): CronsApi {
  return {
    async put<Input>(name: string, input: CronInput<Input>) {
      const { job, options, payload, ...schedule } = input as CronInput<unknown>;
      assertDefinition(job, "job");
      const text = await preparePayload(job, payload, caller.documentLimit);
      const sent = {
        ...schedule,
        job: portableDefinition(job, payload),
        payload: JSON.parse(text),
        ...(options && { options: portableOptions(options) }),
      };
      return caller.call("crons.put", [name, sent]);
    },
    update: (name, changes) => caller.call("crons.update", [name, changes]),
    pause: (name) => caller.call("crons.pause", [name]),
    resume: (name) => caller.call("crons.resume", [name]),
    trigger: async (name) => new RemoteJobHandle(caller, await caller.call<string>("crons.trigger", [name])),
    delete: (name) => caller.call("crons.delete", [name]),
    get: (name) => caller.call("crons.get", [name]),
    list: (page) => caller.call("crons.list", [page]),
    preview: (cron, options) => caller.call("crons.preview", [cron, options]),
  };
}
