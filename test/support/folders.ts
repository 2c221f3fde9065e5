import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, onTestFinished } from "vitest";

const make = () => mkdtempSync(join(tmpdir(), "curfew-test-"));
const remove = (folder: string) => rmSync(folder, { recursive: true, force: true });

/** A new folder, deleted when the test is over. */
export function testFolder(): string {
  const folder = make();
  onTestFinished(() => remove(folder));
  return folder;
}

/** A new folder for all tests of a file, deleted after them. */
export function fileFolder(): string {
  const folder = make();
  afterAll(() => remove(folder));
  return folder;
}
