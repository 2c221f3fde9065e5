import { getEngine } from "../engine.ts";

export const dynamic = "force-dynamic";

export default async function Page() {
  const engine = await getEngine();
  const depth = await engine.queues.depth("mail");
  return <p>{depth.available} mails wait</p>;
}
