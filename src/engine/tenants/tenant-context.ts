import { idsOfTenant } from "../../core/ids.ts";
import type { TenantLimits } from "../../core/tenant/tenant-limits.ts";
import type { EngineContext } from "../context.ts";
import { EventBus } from "../events/event-bus.ts";
import { openOwnParts, type SharedContext } from "../open-context.ts";
import { QueueSettings } from "../queues/queue-settings-cache.ts";
import { scopedStore } from "./scoped-store.ts";
import { TenantLimiter } from "./tenant-limiter.ts";
import type { TenantScope } from "./tenant-scope.ts";

/** The context of an engine within a tenant. What it does not own, such as the clock and the keys, is that of `all`. */
export async function tenantContext(
  all: EngineContext,
  scope: TenantScope,
  limits: () => TenantLimits,
): Promise<SharedContext> {
  const { tenant } = scope;
  const limiter = new TenantLimiter({
    tenant,
    inspect: all.store.inspect,
    limits,
    now: () => all.clock.now(),
  });
  const store = scopedStore(all.store, scope, limiter);
  const own = await openOwnParts(all, {
    store,
    bus: new EventBus(all.logger),
    queues: new QueueSettings(store, all.queues),
    storeFailed: (error, during) => all.storeFailed(error, `${during} of ${tenant}`),
  });
  return {
    ...all,
    ...own,
    tenant,
    admit: (jobs) => limiter.enqueue(jobs),
    nextId: idsOfTenant(all.nextId, scope.prefix),
  };
}
