import { z } from "zod";
import type { OnConflict, UniqueOptions } from "../../core/job/enqueue/unique-key.ts";
import { JOB_STATES } from "../../core/job/job.ts";
import { durationOf } from "../../ojs/wire-durations.ts";

const span = z.union([
  z.int().min(1).max(315_360_000),
  z.string().refine((text) => durationOf(text) !== undefined, {
    error: 'use a duration such as "PT1H" or "1h", or whole seconds',
  }),
]);
const names = z.array(z.string().min(1).max(255)).min(1).max(50);

/** The unique rule. `keys`: what counts besides the type. `key`: the JavaScript client's name for `args_keys`. */
export const uniqueSchema = z
  .looseObject({
    keys: z
      .array(z.enum(["type", "queue", "args", "meta"]))
      .min(1)
      .max(4)
      .nullish(),
    args_keys: names.nullish(),
    meta_keys: names.nullish(),
    key: z.union([names, z.string().min(1).max(255)]).nullish(),
    period: span.nullish(),
    states: z.array(z.enum(JOB_STATES)).min(1).max(JOB_STATES.length).nullish(),
    /** Extensions of curfew: a key of the producer's own, and paths into the first argument. */
    own_key: z.string().min(1).max(1_000).nullish(),
    args_paths: z
      .array(z.array(z.string().min(1).max(255)).min(1).max(50))
      .min(1)
      .max(50)
      .nullish(),
    debounce: z.looseObject({ quiet: span, max_wait: span.nullish() }).nullish(),
    throttle: span.nullish(),
    on_conflict: z.enum(["reject", "replace", "replace_except_schedule", "ignore"]).nullish(),
  })
  .meta({ id: "UniqueRule", description: "Keeps a second job from being added while the first one counts." });

type UniqueBody = z.output<typeof uniqueSchema>;

const CONFLICTS: Readonly<Record<NonNullable<UniqueBody["on_conflict"]>, OnConflict>> = {
  reject: "reject",
  ignore: "ignore",
  replace: "replace",
  replace_except_schedule: "replace-except-schedule",
};

/** `isSpread`: the payload is the whole list of arguments, and names are fields of the first. */
export function readUnique(body: UniqueBody, isSpread: boolean): UniqueOptions {
  const { keys, args_keys, meta_keys, key, period, states, on_conflict, own_key, args_paths } = body;
  const places = args_keys ?? (key == null ? undefined : [key].flat());
  const names = new Set<string>(keys ?? ["type"]);
  const isByArgs = names.has("args") || places !== undefined;
  const paths = args_paths?.map((path) => (isSpread ? [0, ...path] : path));
  const isPaced = body.debounce != null || body.throttle != null;
  return {
    ...(own_key == null
      ? { payload: paths ?? places?.map((name) => (isSpread ? [0, name] : [name])) ?? isByArgs }
      : { key: own_key }),
    ...readPace(body),
    queue: names.has("queue"),
    meta: meta_keys ?? names.has("meta"),
    ...(period != null && { period: { milliseconds: periodOf(period) } }),
    ...(states && { states }),
    // Debounce and throttle say themselves what happens. A rule that says both is refused as a whole.
    ...(!(isPaced && on_conflict == null) && { onConflict: CONFLICTS[on_conflict ?? "reject"] }),
  };
}

function readPace({ debounce, throttle }: UniqueBody): Pick<UniqueOptions, "debounce" | "throttle"> {
  const spanOf = (value: number | string) => ({ milliseconds: periodOf(value) });
  return {
    ...(debounce != null && {
      debounce: {
        quiet: spanOf(debounce.quiet),
        ...(debounce.max_wait != null && { most: spanOf(debounce.max_wait) }),
      },
    }),
    ...(throttle != null && { throttle: spanOf(throttle) }),
  };
}

function periodOf(period: number | string): number {
  return typeof period === "number" ? period * 1_000 : (durationOf(period) as number);
}
