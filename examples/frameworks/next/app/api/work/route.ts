import { openEngine } from "curfew";
import { processors } from "../../../jobs.ts";

export const runtime = "nodejs";
export const dynamic = "force-dynamic";
/** In seconds, longer than `within` below. */
export const maxDuration = 60;

/** The worker of a platform of functions: a cron calls it every minute (vercel.json). */
export async function GET(request: Request): Promise<Response> {
  const secret = process.env.CRON_SECRET;
  if (!secret || request.headers.get("authorization") !== `Bearer ${secret}`)
    return new Response("unauthorized", { status: 401 });
  // Of its own: the platform freezes the process after the reply, and a closed engine cannot be frozen.
  const engine = await openEngine({ store: process.env.STORE ?? "sqlite:shop.db" });
  try {
    return Response.json(await engine.workFor({ processors, within: "50s" }));
  } finally {
    await engine.close({ drain: "0s" });
  }
}
