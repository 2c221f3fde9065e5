import { expect } from "vitest";
import type { ZodType } from "zod";
import { ROUTES } from "../../src/server/routes/all.ts";
import type { Answered } from "./stage.ts";

/** Holds a reply against what the OpenAPI document says about it. */
export function fits(method: string, path: string, { status, body }: Answered): void {
  const route = ROUTES.find((one) => one.method === method && one.path === `/ojs/v1${path}`);
  expect(route, `${method} ${path}`).toBeDefined();
  expect(Object.keys(route?.replies ?? {})).toContain(String(status));
  if (route?.reply) expect((route.reply as ZodType).safeParse(body).error).toBeUndefined();
}
