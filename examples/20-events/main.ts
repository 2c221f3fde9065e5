/**
 * Everything that happens to jobs is recorded in the commit that makes it happen. A second process follows the stream,
 * stops, and goes on later where it left off; an operator puts a name on what they do, and the audit keeps it.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineJob, openEngine, processor, toCloudEvent } from "curfew";
import { z } from "zod";

const sendMail = defineJob({
  type: "mail.send",
  payload: z.object({ to: z.string() }),
  retry: { attempts: 1 },
});

const folder = mkdtempSync(join(tmpdir(), "curfew-example-"));
const store = `sqlite:${join(folder, "jobs.db")}`;
const engine = await openEngine({ store, events: "durable" });
// As another process would open it: on this store events are recorded by now, so this engine records too.
const observer = await openEngine({ store });

engine.work({
  processors: [
    processor(sendMail, ({ payload }) => {
      if (payload.to === "nobody") throw new Error("no such mailbox");
      return `sent to ${payload.to}`;
    }),
  ],
});

let lastSeen: string | undefined;
// Without a cursor it would begin when the store answers, which may be after the enqueue.
const { cursor: begin } = await observer.journal.latest();
const first = observer.journal.follow({ after: begin, types: ["job.*"] });
await engine.enqueue(sendMail, { to: "mia" });
for await (const { name, type, result, cursor } of first) {
  console.log(`${name} ${type}${result ? `: ${result}` : ""}`);
  lastSeen = cursor;
  if (name === "job.completed") break;
}

console.log("the observer is away");
const operator = engine.as({ actor: "ben", reason: "incident 42" });
await operator.queues.pause("mail");
await operator.queues.resume("mail");
const lost = await engine.enqueue(sendMail, { to: "nobody" });

console.log("the observer is back, and has missed nothing");
for await (const event of observer.journal.follow({ after: lastSeen ?? null, types: ["job.*", "queue.*"] })) {
  const { type, subject, data } = toCloudEvent(event);
  const error = (data.last_error ?? data.error) as { message: string } | undefined;
  console.log(
    `${type} of ${subject === lost.id ? "the second mail" : subject}${error ? `: ${error.message}` : ""}`,
  );
  if (type === "job.discarded") break;
}

for (const { actor, action, queue, reason } of (await observer.audit.read()).entries.toReversed())
  console.log(`audit: ${actor} did ${action} on ${queue}, because of ${reason}`);

await observer.close();
await engine.close();
rmSync(folder, { recursive: true });
