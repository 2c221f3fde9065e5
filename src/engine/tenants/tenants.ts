import { type By, parseBy } from "../../core/audit/audit-entry.ts";
import { CurfewError, refuse } from "../../core/errors.ts";
import {
  parseTenantLimits,
  type TenantLimitOptions,
  type TenantLimits,
} from "../../core/tenant/tenant-limits.ts";
import { checkTenantName, tenantOf } from "../../core/tenant/tenant-name.ts";
import type { Instant } from "../../core/time.ts";
import type { TimeoutRow } from "../../core/timeout/timeout.ts";
import type { Hint, TenantUse as Use } from "../../ports/store.ts";
import { commitUnits } from "../commit/commit.ts";
import { recordKind } from "../commit/record-kind.ts";
import type { EngineContext } from "../context.ts";
import type { Delivery, DeliveryLease } from "../dispatch/destination.ts";
import { auditEffects } from "../events/audit-log.ts";
import type { DueRows } from "../sweep/sweep-loop.ts";
import { TenantScope, tenantOfRecord } from "./tenant-scope.ts";

/** What is stored of a tenant. */
interface TenantBody {
  readonly createdAt: Instant;
  readonly limits?: TenantLimits;
}

export interface TenantView {
  readonly name: string;
  readonly createdAt: Instant;
  readonly limits: TenantLimits;
}

/** An engine within a tenant, and what the engine of all tenants does with it. */
export interface OpenTenant<One> {
  readonly engine: One;
  /** Acts on due rows, in the names of the tenant. */
  act(due: DueRows, now: Instant): Promise<void>;
  deliverJob(row: TimeoutRow, lease: DeliveryLease): Promise<Delivery>;
  hear(hint: Hint): void;
  /** Nobody uses it: it has no workers, no hosts and no requests under way. */
  isIdle(): boolean;
}

interface Closable {
  close(): Promise<void>;
}

interface Opened<One> {
  readonly scope: TenantScope;
  readonly tenant: Promise<OpenTenant<One>>;
  isOpen: OpenTenant<One> | undefined;
  usedAt: number;
}

const TENANTS = recordKind<TenantBody>("tenant");
const SECRETS = recordKind<{ readonly secret: string }>("tenant.secret");
const SECRET_NAME = "ids";
const SECRET_BYTES = 32;
/** Tenants that are registered. Each costs a record. */
const MOST_TENANTS = 10_000;
/** Tenants that are open in one process. The one that was used longest ago is closed, if nobody uses it. */
const MOST_OPEN = 1_000;
const LIMITS_READ_EVERY = 5_000;

/** Opens the engine of a tenant over a scope; `limits` gives the limits that hold now. */
type OpenScope<One> = (scope: TenantScope, limits: () => TenantLimits) => Promise<OpenTenant<One>>;

/** The tenants of a store: who they are, what they may use, and the engines that are open within them. */
export class Tenants<One extends Closable> {
  readonly #context: EngineContext;
  readonly #open: OpenScope<One>;
  readonly #opened = new Map<string, Opened<One>>();
  readonly #limits = new Map<string, TenantLimits>();
  readonly #known = new Set<string>();
  #limitsReadAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;
  #secret: Promise<string> | undefined;

  constructor(context: EngineContext, open: OpenScope<One>) {
    this.#context = context;
    this.#open = open;
  }

  /** The engine within a tenant. It is opened once and closed with this one. */
  async open(name: string): Promise<One> {
    return (await this.#opening(name)).engine;
  }

  async #opening(name: string): Promise<OpenTenant<One>> {
    if (this.#context.tenant !== null)
      throw refuse("invalid_option", "tenant", name, "ask the engine that you opened, not that of a tenant");
    const tenant = checkTenantName(name, "tenant");
    const known = this.#opened.get(tenant);
    if (known) {
      known.usedAt = this.#context.system.monotonic();
      await this.#readLimits();
      return known.tenant;
    }
    return this.#openNew(tenant);
  }

  async #openNew(tenant: string): Promise<OpenTenant<One>> {
    const scope = new TenantScope(tenant, await this.#secretOf());
    await this.#readLimits();
    const known = this.#opened.get(tenant);
    if (known) return known.tenant;
    const opening = this.#open(scope, () => this.#limits.get(tenant) ?? {});
    const usedAt = this.#context.system.monotonic();
    const opened: Opened<One> = { scope, tenant: opening, isOpen: undefined, usedAt };
    this.#opened.set(tenant, opened);
    opening.then(
      (one) => {
        opened.isOpen = one;
      },
      () => this.#opened.delete(tenant),
    );
    this.#makeRoom();
    return opening;
  }

  #makeRoom(): void {
    if (this.#opened.size <= MOST_OPEN) return;
    const idle = [...this.#opened].filter(([, { isOpen }]) => isOpen?.isIdle());
    const [oldest] = idle.sort(([, a], [, b]) => a.usedAt - b.usedAt);
    if (!oldest) return;
    this.#opened.delete(oldest[0]);
    oldest[1].isOpen?.engine
      .close()
      .catch((error: unknown) => this.#context.storeFailed(error, "closing a tenant"));
  }

  /** The engines that are open now, by tenant. */
  get opened(): ReadonlyMap<string, One> {
    return new Map(
      [...this.#opened].flatMap(([name, { isOpen }]) => (isOpen ? [[name, isOpen.engine]] : [])),
    );
  }

  /** Makes sure that the tenant is in the list. The first job of a tenant does so too. */
  async register(name: string): Promise<void> {
    const tenant = checkTenantName(name, "tenant");
    if (this.#known.has(tenant)) return;
    if (!(await TENANTS.load(this.#context.store, tenant))) await this.#write(tenant, undefined, undefined);
    this.#known.add(tenant);
  }

  /** Creates a tenant, or replaces its limits. */
  async put(
    name: string,
    options: { readonly limits?: TenantLimitOptions } = {},
    by?: By,
  ): Promise<TenantView> {
    const tenant = checkTenantName(name, "tenant");
    const limits = options.limits && parseTenantLimits(options.limits, "limits");
    await this.#write(tenant, limits ?? {}, by && parseBy(by));
    this.#known.add(tenant);
    this.#limitsReadAt = Number.NEGATIVE_INFINITY;
    await this.#readLimits();
    return (await this.get(tenant)) as TenantView;
  }

  async get(name: string): Promise<TenantView | null> {
    const record = await TENANTS.load(this.#context.store, checkTenantName(name, "tenant"));
    return record && viewOf(record.name, record.body);
  }

  /** Tenants by name; `after` is the last name of the page before. */
  async list(
    page: { readonly after?: string | undefined; readonly limit?: number } = {},
  ): Promise<TenantView[]> {
    const records = await TENANTS.list(this.#context.store, page.after ?? null, page.limit ?? 100);
    return records.map(({ name, body }) => viewOf(name, body));
  }

  /** How many active and waiting jobs it has, each up to a million. */
  use(name: string): Promise<Use> {
    return this.#context.store.inspect.used(checkTenantName(name, "tenant"), 1_000_000);
  }

  /** Removes a tenant from the list, with its limits. Refused while it has jobs. */
  async remove(name: string, by?: By): Promise<void> {
    const tenant = checkTenantName(name, "tenant");
    const { store, clock } = this.#context;
    const record = await TENANTS.load(store, tenant);
    if (!record) throw new CurfewError("not_found", `tenant: there is no tenant ${JSON.stringify(tenant)}`);
    const { jobs } = await store.inspect.page({ filter: { tenant }, after: null }, 1);
    if (jobs.length > 0) {
      const fix = "cancel and delete its jobs first";
      throw new CurfewError("invalid_state", `tenant: ${JSON.stringify(tenant)} has jobs; ${fix}`);
    }
    const now = clock.now();
    const audit = auditEffects(
      this.#context,
      by && parseBy(by),
      "tenant.delete",
      { details: { tenant } },
      now,
    );
    const unit = {
      when: [TENANTS.guard(tenant, record.version)],
      effects: [TENANTS.remove(tenant), ...audit],
    };
    await commitUnits(this.#context, [unit]);
    this.#known.delete(tenant);
    this.#limits.delete(tenant);
  }

  async #write(tenant: string, limits: TenantLimits | undefined, by: By | undefined): Promise<void> {
    const { store, clock } = this.#context;
    const before = await TENANTS.load(store, tenant);
    if (!before) await this.#refuseTooMany(tenant);
    const now = clock.now();
    const body = { createdAt: before?.body.createdAt ?? now, ...(limits && { limits: { ...limits } }) };
    const details = { tenant, ...(limits && { limits: { ...limits } }) };
    const audit = auditEffects(this.#context, by, "tenant.put", { details }, now);
    await commitUnits(this.#context, [{ effects: [TENANTS.put(tenant, body, null), ...audit] }]);
  }

  async #refuseTooMany(tenant: string): Promise<void> {
    if (this.#known.size < MOST_TENANTS) return;
    const fix = `a store has at most ${MOST_TENANTS} tenants; remove some that are no longer used`;
    throw refuse("invalid_limit", "tenant", tenant, fix);
  }

  /** Limits may be changed by another process. */
  async #readLimits(): Promise<void> {
    const { system, store } = this.#context;
    if (system.monotonic() - this.#limitsReadAt < LIMITS_READ_EVERY) return;
    this.#reading ??= TENANTS.all(store, MOST_TENANTS)
      .then((all) => {
        this.#limitsReadAt = system.monotonic();
        this.#limits.clear();
        for (const [name, { body }] of all) {
          this.#known.add(name);
          if (body.limits) this.#limits.set(name, body.limits);
        }
      })
      .finally(() => {
        this.#reading = undefined;
      });
    await this.#reading;
  }

  /** The secret that masks ids. It is made once for a store. */
  #secretOf(): Promise<string> {
    this.#secret ??= this.#loadSecret().catch((error: unknown) => {
      this.#secret = undefined;
      throw error;
    });
    return this.#secret;
  }

  async #loadSecret(): Promise<string> {
    const { store, system } = this.#context;
    const stored = await SECRETS.load(store, SECRET_NAME);
    if (stored) return stored.body.secret;
    const bytes = new Uint8Array(SECRET_BYTES);
    system.fill(bytes);
    const secret = Buffer.from(bytes).toString("hex");
    const unit = {
      when: [SECRETS.guard(SECRET_NAME, 0)],
      effects: [SECRETS.put(SECRET_NAME, { secret }, null)],
    };
    const [outcome] = await commitUnits(this.#context, [unit]);
    if (outcome?.ok) return secret;
    const others = await SECRETS.load(store, SECRET_NAME);
    return others?.body.secret ?? secret;
  }

  /** A queue of a tenant has jobs to claim. */
  ready(queue: string): void {
    this.hear({ ready: queue });
  }

  hear(hint: Hint): void {
    if (this.#opened.size === 0) return;
    if ("ready" in hint) {
      const opened = this.#opened.get(tenantOf(hint.ready) ?? "");
      const own = opened?.scope.hint(hint);
      if (own) opened?.isOpen?.hear(own);
      return;
    }
    for (const { scope, isOpen } of this.#opened.values()) {
      const own = scope.hint(hint);
      if (own) isOpen?.hear(own);
    }
  }

  /** Hands due rows to the engines of their tenants. Returns those of no tenant. */
  async handOut({ jobs, records }: DueRows, now: Instant): Promise<DueRows> {
    const theirs = jobs.filter(({ queue }) => tenantOf(queue) !== undefined);
    const documents = records.filter((record) => tenantOfRecord(record) !== undefined);
    if (theirs.length + documents.length === 0) return { jobs, records };
    const names = new Set<string>();
    for (const { queue } of theirs) names.add(tenantOf(queue) as string);
    for (const record of documents) names.add(tenantOfRecord(record) as string);
    for (const name of names) {
      const due = {
        jobs: theirs.filter(({ queue }) => tenantOf(queue) === name),
        records: documents.filter((record) => tenantOfRecord(record) === name),
      };
      // One tenant's failure must not delay the others. The rows come again when the sweep's hold ends.
      await this.#actIn(name, due, now).catch((error: unknown) => this.#context.storeFailed(error, "sweep"));
    }
    return {
      jobs: jobs.filter(({ queue }) => tenantOf(queue) === undefined),
      records: records.filter((record) => tenantOfRecord(record) === undefined),
    };
  }

  async #actIn(name: string, { jobs, records }: DueRows, now: Instant): Promise<void> {
    const tenant = await this.#opening(name);
    const { scope } = this.#opened.get(name) as Opened<One>;
    const own = { jobs: jobs.map((row) => scope.row(row)), records: records.map((row) => scope.record(row)) };
    await tenant.act(own, now);
  }

  /** Enqueues the job of a due timeout within its tenant. */
  async deliver(row: TimeoutRow, lease: DeliveryLease): Promise<Delivery> {
    const name = tenantOf(row.id) as string;
    const tenant = await this.#opening(name);
    const { scope } = this.#opened.get(name) as Opened<One>;
    return tenant.deliverJob(scope.timeout(row), lease);
  }

  async close(close: (engine: One) => Promise<void>): Promise<void> {
    const engines = [...this.#opened.values()].map(({ tenant }) =>
      tenant.then(({ engine }) => close(engine)),
    );
    await Promise.allSettled(engines);
    this.#opened.clear();
  }
}

function viewOf(name: string, { createdAt, limits = {} }: TenantBody): TenantView {
  return { name, createdAt, limits };
}
