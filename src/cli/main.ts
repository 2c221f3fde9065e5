#!/usr/bin/env node
import { refuseOldNode } from "../core/node-version.ts";

try {
  refuseOldNode(process.versions.node);
} catch (error) {
  console.error((error as Error).message);
  process.exit(1);
}
// Imported after the check: on an older Node this import fails with an unclear error.
const { run } = await import("./program.ts");
const code = await run(process.argv);
// Exit even if a handler or a timer of a user's module is still running.
// After a failed write, the listener of the error chooses the code.
process.stdout.write("", (error) => {
  if (!error) process.exit(code);
});
