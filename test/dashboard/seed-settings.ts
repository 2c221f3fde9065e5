import { defineJob } from "../../src/core/job/job-definition.ts";
import type { TestEngine } from "../../src/testing/test-engine.ts";
import { BROKEN, fakeSender, OK } from "../engine/webhook-stage.ts";

/** What the pages of webhooks, schemas, calendars and tenants are opened with. */
export interface SeededSettings {
  readonly webhook: string;
  readonly brokenWebhook: string;
}

const GOOD_URL = "https://good.example.com/hooks?token=secret-1";
const BROKEN_URL = "https://broken.example.com/hooks";

/** Endpoints without a network: one always answers 500, whose words are the hostile ones. */
export const senderOf = (hostile: string) =>
  fakeSender(({ url }) =>
    url.startsWith(BROKEN_URL) ? { ...BROKEN, text: hostile } : { ...OK, text: hostile },
  ).sender;

const offer = defineJob({ type: "offer.send", queue: "offers", fair: (payload) => (payload as Offer).plan });
type Offer = { readonly plan: string };

/** A schema with a field whose name and description are hostile. */
export function chargeSchema(hostile: string, required: readonly string[] = ["cents"]) {
  const properties = {
    cents: { type: "integer", minimum: 1, description: hostile },
    [hostile.slice(0, 60) || "note"]: { type: "string", title: hostile },
  };
  return {
    type: "array",
    minItems: 1,
    prefixItems: [{ type: "object", properties, required: [...required] }],
  };
}

/** The clock of the stage must stand still meanwhile. */
export async function seedSettings(
  { engine, advance }: TestEngine,
  hostile: string,
): Promise<SeededSettings> {
  const good = await engine.webhooks.create({
    url: GOOD_URL,
    events: ["job.completed"],
    types: ["order.fetch"],
    metadata: { note: hostile },
  });
  const broken = await engine.webhooks.create({
    url: BROKEN_URL,
    events: ["queue.*"],
    retry: { attempts: 3, delays: ["1s", "2s"] },
  });
  await engine.schemas.put("card.charge", 1, chargeSchema(hostile), {
    validation: "always",
    compatibility: "backward",
  });
  await engine.schemas.put("card.charge", 2, chargeSchema(hostile, []), { uri: "urn:shop:charge" });
  await engine.calendars.put("frankfurt", {
    zone: "Europe/Berlin",
    week: {
      mon: "09:00-17:00",
      tue: "09:00-17:00",
      wed: "09:00-17:00",
      thu: "09:00-17:00",
      fri: "09:00-15:00",
    },
    days: [
      { date: "2026-12-24", hours: "09:00-12:00", name: "Christmas Eve" },
      { date: "2026-12-25", name: hostile.slice(0, 100) || "Christmas" },
    ],
    until: "2026-12-31",
  });
  await engine.tenants.put("acme", { limits: { active: 5, waiting: 4, rate: { limit: 60, per: "1m" } } });
  const acme = await engine.tenant("acme");
  for (let count = 0; count < 4; count++) await acme.enqueue(offer, { plan: "acme" }, { delay: "5h" });
  await engine.queues.configure("offers", { fair: { weights: { enterprise: 3 } } });
  for (const plan of ["enterprise", "team", "team", hostile.slice(0, 200)])
    await engine.enqueue(offer, { plan });
  await engine.queues.pause("mail", { actor: "ana" });
  await engine.queues.resume("mail", { actor: "ana" });
  await advance("30s");
  return { webhook: good.webhook.id, brokenWebhook: broken.webhook.id };
}
