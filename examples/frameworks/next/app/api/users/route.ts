import { getEngine } from "../../../engine.ts";
import { welcome } from "../../../jobs.ts";

export const runtime = "nodejs";

/** Answers when the job is durable, and does not wait for the mail. */
export async function POST(request: Request): Promise<Response> {
  const { email } = (await request.json()) as { email: string };
  const engine = await getEngine();
  const job = await engine.enqueue(welcome, { to: email });
  return Response.json({ job: job.id }, { status: 202 });
}
