import type { WireEvent } from "../../../ojs/replies/wire-replies.ts";
import { countText, durationText, percentText, shortId } from "../../ui/format.ts";

/** The one sentence beside the type, out of what the event says. */
export function wordOf({ data }: WireEvent): string {
  const words: string[] = [];
  const text = (name: string) => (typeof data[name] === "string" ? (data[name] as string) : undefined);
  const number = (name: string) => (typeof data[name] === "number" ? (data[name] as number) : undefined);
  // An event that ends a job has the error of its last attempt.
  const error = (data.error ?? data.last_error) as { readonly message?: string } | string | undefined;
  const attempt = number("attempt");
  if (text("job_type")) words.push(text("job_type") as string);
  if (text("saga_type")) words.push(text("saga_type") as string);
  const handled = data.event as { readonly kind?: string; readonly name?: string } | undefined;
  if (typeof handled?.name === "string") words.push(`${handled.kind ?? "message"} ${handled.name}`);
  if (attempt !== undefined && attempt > 0) words.push(`attempt ${attempt}`);
  if (number("progress") !== undefined) words.push(percentText(number("progress") as number));
  if (text("message")) words.push(text("message") as string);
  if (number("duration_ms") !== undefined)
    words.push(`after ${durationText(number("duration_ms") as number)}`);
  if (number("gap_ms") !== undefined) words.push(`for ${durationText(number("gap_ms") as number)}`);
  if (text("worker_id")) words.push(`by ${shortId(text("worker_id") as string)}`);
  if (text("reason")) words.push(text("reason") as string);
  if (number("waiting") !== undefined) words.push(`${countText(number("waiting") as number)} wait`);
  const message = typeof error === "string" ? error : error?.message;
  if (message) words.push(message);
  return words.join(", ");
}
