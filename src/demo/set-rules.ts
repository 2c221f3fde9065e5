/** What an operator has set up in the shop: a calendar, schemas, a webhook, tenants and fair turns. */
import { CurfewError } from "../core/errors.ts";
import type { Engine } from "../engine/engine.ts";
import type { Logger } from "../ports/log.ts";
import { charge, newsletter, offer } from "./jobs.ts";

const BY = { actor: "ana", reason: "set up with the shop" } as const;
const CALENDAR = "demo: shop hours";

/** Only where there is nothing of the kind yet: a store without jobs may have rules of somebody else. */
export async function setRules(engine: Engine, logger: Logger): Promise<void> {
  if ((await engine.calendars.list({ limit: 1 })).length === 0) await setCalendar(engine);
  if ((await engine.schemas.list({ limit: 1 })).length === 0) await setSchemas(engine, logger);
  if ((await engine.webhooks.list({ limit: 1 })).length === 0) await setWebhook(engine);
  if ((await engine.tenants.list({ limit: 1 })).length === 0) await setTenants(engine);
  await engine.queues.configure(
    offer.queue ?? "offers",
    { fair: { weights: { vip: 3 }, defaultWeight: 1 } },
    BY,
  );
}

/** The holidays of this year and the next, as a shop in Frankfurt has them. Those that move with Easter are left out. */
async function setCalendar(engine: Engine): Promise<void> {
  const year = new Date(engine.now()).getUTCFullYear();
  const days = [year, year + 1].flatMap((each) => [
    { date: `${each}-01-01`, name: "New Year's Day" },
    { date: `${each}-05-01`, name: "Labour Day" },
    { date: `${each}-10-03`, name: "German Unity Day" },
    { date: `${each}-12-24`, hours: "09:00-12:00", name: "Christmas Eve" },
    { date: `${each}-12-25`, name: "Christmas Day" },
    { date: `${each}-12-26`, name: "Boxing Day" },
    { date: `${each}-12-31`, hours: "09:00-12:00", name: "New Year's Eve" },
  ]);
  const hours = "09:00-17:00";
  const week = { mon: hours, tue: hours, wed: hours, thu: hours, fri: "09:00-15:00", sat: "10:00-14:00" };
  const until = `${year + 1}-12-31`;
  await engine.calendars.as(BY).put(CALENDAR, { zone: "Europe/Berlin", week, days, until });
}

/** Two versions: in the second the card may be left out. */
async function setSchemas(engine: Engine, logger: Logger): Promise<void> {
  const properties = {
    order: { type: "string", description: "The number of the order" },
    cents: { type: "integer", minimum: 1, description: "What is charged" },
    card: { type: "string" },
    isDeclined: { type: "boolean" },
  };
  const schemaOf = (required: readonly string[]) => ({
    type: "array",
    minItems: 1,
    maxItems: 1,
    prefixItems: [{ type: "object", properties, required: [...required] }],
  });
  const schemas = engine.schemas.as(BY);
  const first = schemaOf(["order", "cents", "card"]);
  try {
    await schemas.put(charge.type, 1, first, { validation: "always", compatibility: "backward" });
    await schemas.put(charge.type, 2, schemaOf(["order", "cents"]));
  } catch (error) {
    // The packages that check schemas are optional, and so are schemas in a demo.
    if (!(error instanceof CurfewError) || error.code !== "missing_package") throw error;
    logger.info({ error }, "the demo goes on without schemas");
  }
}

/** Nobody listens there: names that end in .invalid never exist. Its deliveries fail, and it is left in peace for a while. */
async function setWebhook(engine: Engine): Promise<void> {
  await engine.webhooks.as(BY).create({
    url: "https://partner.invalid/hooks/shop",
    events: ["job.stuck", "job.dead"],
    retry: { attempts: 3, delays: ["5s", "20s"] },
    metadata: { owner: "the partner team" },
  });
}

async function setTenants(engine: Engine): Promise<void> {
  const minute = { limit: 600, per: "1m" } as const;
  await engine.tenants.put("acme", { limits: { active: 20, waiting: 10, rate: minute } }, BY);
  await engine.tenants.put("globex", { limits: { payloadBytes: 65_536 } }, BY);
  const acme = await engine.tenant("acme");
  for (let issue = 1; issue <= 9; issue++)
    await acme.enqueue(newsletter, { issue }, { delay: "20h", timeouts: { wait: "2d" } });
  const globex = await engine.tenant("globex");
  await globex.enqueue(newsletter, { issue: 1 }, { delay: "30h", timeouts: { wait: "3d" } });
}
