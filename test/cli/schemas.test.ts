import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { answer, curfew, openStage, type Stage } from "./stage.ts";

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage.close());

const ROOT = join(import.meta.dirname, "../..");

function jobs(name: string, payload: string): string {
  const file = join(stage.folder, name);
  const lines = [
    `import { defineJob } from "${ROOT}/src/index.ts";`,
    `import { z } from "${ROOT}/node_modules/zod/index.js";`,
    `export const pay = defineJob({ type: "cli.pay", payload: z.object(${payload}) });`,
  ];
  writeFileSync(file, lines.join("\n"));
  return file;
}

it("schemas are published from a module, once per change, and broken changes are refused", async () => {
  const first = jobs("first.ts", "{ cents: z.int().min(1) }");
  const target = ["--url", stage.url];
  expect(await answer(["schemas", "publish", first, ...target])).toEqual({
    published: [{ type: "cli.pay", version: 1, is_new: true }],
  });
  const again = await curfew(["schemas", "publish", first, ...target]);
  expect([again.code, again.stdout.trim()]).toEqual([0, "cli.pay: version 1, unchanged"]);
  const narrow = jobs("narrow.ts", "{ cents: z.int().min(1), to: z.string() }");
  const dry = await curfew(["schemas", "publish", narrow, "--dry-run", ...target]);
  expect([dry.code, dry.stdout]).toEqual([1, expect.stringContaining("args[0].to: it is required now")]);
  const refused = await curfew(["schemas", "publish", narrow, ...target]);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("not backward compatible")]);
  const forced = ["schemas", "publish", narrow, "--compatibility", "none", ...target];
  expect(await answer(forced)).toMatchObject({ published: [{ version: 2, is_new: true }] });
  const { schemas } = await answer(["schemas", "ls", "--store", stage.store]);
  expect(schemas).toMatchObject([{ type: "cli.pay", versions: [1, 2], validation: "always" }]);
  const bad = await curfew([
    "schemas",
    "check",
    "cli.pay",
    '{"cents":0}',
    "--schema-version",
    "1",
    ...target,
  ]);
  expect([bad.code, bad.stdout.trim()]).toEqual([1, "args[0].cents: must be >= 1"]);
  expect((await curfew(["schemas", "rm", "cli.pay", "2", ...target])).code).toBe(0);
  expect(await answer(["schemas", "show", "cli.pay", ...target])).toMatchObject({ version: 1 });
});
