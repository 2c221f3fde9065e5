import { refuse } from "../../errors.ts";
import { UUID } from "../../ids.ts";
import type { JobId } from "../job.ts";

/** The id that a caller chose for a job. */
export function checkGivenId(id: string): JobId {
  if (typeof id !== "string" || !UUID.test(id)) {
    throw refuse("invalid_option", "options.id", id, "use a lower-case UUID, or leave it out");
  }
  return id;
}
