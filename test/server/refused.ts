import { expect } from "vitest";
import { HttpError } from "../../src/server/http/http-error.ts";

/** The error with which a request was refused. */
export function refused(act: () => unknown): HttpError {
  try {
    act();
  } catch (error) {
    if (error instanceof HttpError) return error;
    throw error;
  }
  return expect.fail("nothing was refused");
}
