import type { JobId } from "../core/job/job.ts";
import { isSealed, opened, type SealedField, type Sealing } from "../core/job/sealed.ts";
import type { Json } from "../core/schema.ts";
import type { JobSnapshot } from "../ojs/read-job.ts";

/** A document of a reply, decrypted if it is encrypted. Throws if it cannot be opened. */
export function openedJson(
  sealing: Sealing | undefined,
  value: unknown,
  id: JobId,
  field: SealedField,
): unknown {
  const text = typeof value === "object" && value !== null ? JSON.stringify(value) : null;
  return isSealed(text) ? (JSON.parse(opened(sealing, text, { id }, field)) as Json) : value;
}

/** A job with its documents decrypted. What cannot be opened stays as it is. */
export function openedSnapshot(sealing: Sealing, job: JobSnapshot): JobSnapshot {
  const open = (value: unknown, field: SealedField) => {
    try {
      return openedJson(sealing, value, job.id, field);
    } catch {
      return value;
    }
  };
  return { ...job, payload: open(job.payload, "payload"), result: open(job.result, "result") } as JobSnapshot;
}
