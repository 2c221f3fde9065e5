import { z } from "zod";
import { show } from "../../core/errors.ts";
import { type LimitOptions, queueLimitKey, type RateOptions } from "../../core/limit/limit.ts";
import type { LimitChange, LimitView } from "../../engine/queues/key-limits.ts";
import { durationOf, isoDuration } from "../../ojs/wire-durations.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import { refusedField } from "../http/http-error.ts";

/** Limits on the wire: how many jobs of a key run at once, and how many start per period. */

const count = z.int().min(1).max(1_000_000);

const UNITS = { second: 1_000, minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const;
type Unit = keyof typeof UNITS;

const period = z
  .union([
    z.enum(Object.keys(UNITS) as [Unit, ...Unit[]]),
    z.string().refine((text) => durationOf(text) !== undefined, {
      error: 'use a duration such as "PT1M" or "1m", a unit such as "second", or whole seconds',
    }),
    z.int().min(1).max(31_536_000),
  ])
  .meta({ description: "A duration such as PT1M or 1m, second, minute, hour or day, or whole seconds." });

export const rateSchema = z.looseObject({ limit: count, period });
const key = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[^\p{Cc}\p{Cs}]*$/u, { error: "use a key without control characters" });

export const rateLimitSchema = z
  .looseObject({
    key: key.nullish(),
    concurrency: count.nullish(),
    rate: z.union([rateSchema, count]).nullish(),
    throttle: rateSchema.nullish(),
    period: period.nullish(),
    limit: count.nullish(),
    max_per_second: count.nullish(),
    on_limit: z.enum(["wait", "reschedule", "drop"]).nullish(),
  })
  .meta({
    id: "RateLimit",
    description: "Jobs with the same key share it. Without a key, the jobs of the queue do.",
  });

type RateLimitBody = z.output<typeof rateLimitSchema>;
type Rate = { readonly limit: number; readonly period: z.output<typeof period> };

function msOf(said: Rate["period"]): number {
  if (typeof said === "number") return said * 1_000;
  return UNITS[said as Unit] ?? (durationOf(said) as number);
}

export const rateOf = ({ limit, period: per }: Rate): RateOptions => ({
  limit,
  per: { milliseconds: msOf(per) },
});

/** Evenly spaced starts: one in each part of the period. */
function throttleOf({ limit, period: per }: Rate): RateOptions {
  return { limit: 1, per: { milliseconds: Math.max(1, Math.round(msOf(per) / limit)) } };
}

/** The rate in any spelling. */
export function readRate(body: RateLimitBody, field: string): RateOptions | undefined {
  const { rate, throttle, max_per_second, limit } = body;
  const per = body.period ?? "second";
  const said: RateOptions[] = [];
  if (typeof rate === "number") said.push(rateOf({ limit: rate, period: per }));
  else if (rate) said.push(rateOf(rate as Rate));
  if (throttle) said.push(throttleOf(throttle as Rate));
  if (max_per_second != null) said.push(rateOf({ limit: max_per_second, period: "second" }));
  if (limit != null) said.push(rateOf({ limit, period: per }));
  if (said.length > 1)
    throw refusedField(
      field,
      "a key has one rate: send rate, throttle, max_per_second or limit, and no second one",
    );
  return said[0];
}

/** The delay of `reschedule` without a rate. */
const LATER = 5_000;

/** Reads the limit of a job. */
export function readLimit(body: RateLimitBody, queue: string): LimitOptions {
  const rate = readRate(body, "rate_limit");
  const { concurrency, on_limit } = body;
  if (concurrency == null && rate === undefined)
    throw refusedField("rate_limit", "it bounds nothing: send concurrency, rate, throttle or max_per_second");
  const per = (rate?.per as { milliseconds: number } | undefined)?.milliseconds ?? LATER;
  return {
    key: body.key ?? queueLimitKey(queue),
    ...(concurrency != null && { concurrency }),
    ...(rate && { rate }),
    ...(on_limit === "drop" && { onLimit: "drop" }),
    ...(on_limit === "reschedule" && { onLimit: { reschedule: { milliseconds: per } } }),
  };
}

const lifted = z.literal("none");

export const limitChangeSchema = z
  .looseObject({
    concurrency: z.union([count, lifted]).nullish(),
    rate: z.union([rateSchema, count, lifted]).nullish(),
    throttle: rateSchema.nullish(),
    period: period.nullish(),
    limit: count.nullish(),
    max_per_second: count.nullish(),
    expires_at: z.string().nullish(),
  })
  .meta({
    id: "LimitOverride",
    description:
      'What holds for a key whatever its jobs say; "none" lifts a part, and what is left out is as they say.',
  });

type ChangeBody = z.output<typeof limitChangeSchema>;

/** Reads an operator's override. */
export function readChange({ concurrency, rate, expires_at, ...rest }: ChangeBody): LimitChange {
  if (expires_at != null)
    throw refusedField("expires_at", "an override stays until it is deleted; leave expires_at out");
  const said = rate === "none" ? ("none" as const) : readRate({ ...rest, rate } as RateLimitBody, "rate");
  if (concurrency == null && said === undefined)
    throw refusedField("rate", 'send concurrency, rate, or limit and period; "none" lifts one');
  return { ...(concurrency != null && { concurrency }), ...(said !== undefined && { rate: said }) };
}

/** A limit, with the field names of all known clients. */
export function limitFields(view: LimitView) {
  const { limit, override } = view;
  const overriding = override && {
    ...(override.concurrency !== undefined && { concurrency: override.concurrency ?? "none" }),
    ...(override.rate !== undefined && {
      rate: override.rate ? { limit: override.rate.limit, period: isoDuration(override.rate.per) } : "none",
    }),
    ...(override.rate && { limit: override.rate.limit, period: isoDuration(override.rate.per) }),
  };
  return {
    key: view.key,
    concurrency: limit?.concurrency ?? null,
    rate: limit?.rate ? { limit: limit.rate.limit, period: isoDuration(limit.rate.per) } : null,
    limit: limit?.rate?.limit ?? limit?.concurrency ?? null,
    period: limit?.rate ? isoDuration(limit.rate.per) : null,
    active: view.inUse,
    waiting: view.waiting,
    starts: view.starts,
    available: view.room,
    next_at: view.nextAt === null ? null : instantText(view.nextAt),
    ...(overriding && { override: overriding }),
  };
}

/** A key from a path or a query. Not every store can keep every character. */
export function keyOf(said: string | undefined, field = "key"): string {
  const { data, error } = key.safeParse(said);
  if (data !== undefined) return data;
  throw refusedField(field, `${show(said)} is no key of a limit; ${error?.issues[0]?.message}`);
}

/** Whether the key has jobs or an override. */
export function isKnown({ limit, override, inUse, waiting, starts }: LimitView): boolean {
  return limit !== null || override !== null || inUse + waiting + starts > 0;
}
