import { isSealed, opened, type SealedField, type Sealing } from "../core/job/documents/sealed.ts";
import type { Job } from "../core/job/job-view.ts";
import type { Json } from "../core/schema.ts";

/** A document of a reply, decrypted if it is encrypted. Throws if it cannot be opened. */
export function openedJson<Value>(
  sealing: Sealing | undefined,
  value: Value,
  id: string,
  field: SealedField,
): Value {
  const text = typeof value === "object" && value !== null ? JSON.stringify(value) : null;
  return isSealed(text) ? (JSON.parse(opened(sealing, text, { id }, field)) as Json as Value) : value;
}

/** A job with its documents decrypted. What cannot be opened stays as it is. */
export function openedJob<Result>(sealing: Sealing | undefined, job: Job<Result>): Job<Result> {
  if (!sealing) return job;
  const open = <Value>(value: Value, field: SealedField): Value => {
    try {
      return openedJson(sealing, value, job.id, field);
    } catch {
      return value;
    }
  };
  const { payload, result, checkpoint } = job;
  return Object.assign(Object.create(Object.getPrototypeOf(job)), job, {
    payload: open(payload, "payload"),
    result: open(result, "result"),
    checkpoint: open(checkpoint, "checkpoint"),
  });
}
