import { getEngine } from "../../../engine.ts";

export const runtime = "nodejs";
export const dynamic = "force-dynamic";

export async function GET(): Promise<Response> {
  try {
    const engine = await getEngine();
    await engine.store.clock();
    return Response.json({ status: "up" });
  } catch {
    return Response.json({ status: "down" }, { status: 503 });
  }
}
