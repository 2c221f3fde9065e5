import { getEngine } from "../../../../engine.ts";

export const runtime = "nodejs";

export async function GET(
  _request: Request,
  { params }: { params: Promise<{ id: string }> },
): Promise<Response> {
  const engine = await getEngine();
  const job = await engine.load((await params).id);
  return Response.json(
    { state: job?.state ?? null, result: job?.result ?? null },
    { status: job ? 200 : 404 },
  );
}
