import { HttpError } from "../http/http-error.ts";
import { EventHub } from "../live/event-hub.ts";
import type { RouteContext } from "../route.ts";

const METRICS = "Metrics are about the whole server; a caller within a tenant may read them as JSON";

/** What the routes of a server see for each tenant: an engine, a service and a hub of events within it. */
export class TenantContexts {
  readonly #all: RouteContext;
  readonly #byTenant = new Map<string, RouteContext>();
  #isClosed = false;

  constructor(all: RouteContext) {
    this.#all = all;
  }

  /** A tenant is listed from its first write on: a reader with a wrong name leaves no trace. */
  async open(tenant: string, isWrite: boolean): Promise<RouteContext> {
    const { engine: all, service, logger } = this.#all;
    const engine = await all.tenant(tenant);
    if (isWrite) await all.tenants.register(tenant);
    const known = this.#byTenant.get(tenant);
    // The engine closes tenants that nobody uses.
    if (known?.engine === engine) return known;
    known?.hub.close();
    const context: RouteContext = {
      ...this.#all,
      engine,
      service: engine.service,
      hub: new EventHub(engine, service.system, logger),
      metrics: () => Promise.reject(new HttpError(403, "forbidden", METRICS)),
    };
    if (this.#isClosed) context.hub.close();
    this.#byTenant.set(tenant, context);
    return context;
  }

  hangUp(): void {
    this.#isClosed = true;
    for (const { hub } of this.#byTenant.values()) hub.close();
  }

  async close(): Promise<void> {
    this.hangUp();
    await Promise.all([...this.#byTenant.values()].map(({ service }) => service.close()));
  }
}
