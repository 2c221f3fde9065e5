#!/usr/bin/env node
import { refuseOldNode } from "../core/node-version.ts";

try {
  refuseOldNode(process.versions.node);
} catch (error) {
  console.error((error as Error).message);
  process.exit(1);
}
// Loaded only now: an older Node would stumble over what follows, and say something less clear.
const { run } = await import("./program.ts");
const code = await run(process.argv);
// A handler that never ends, or a module's own timer, must not keep a command alive that has done its work.
process.stdout.write("", () => process.exit(code));
