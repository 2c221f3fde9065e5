/**
 * The entry of the reaper: a process that outlives its parent by a moment. It holds the names of the process groups
 * that the parent has started; when the pipe to the parent ends, however the parent died, it kills them. A child that
 * loops cannot notice the death of its parent by itself.
 */
const groups = new Set<number>();
let rest = "";

process.stdin.setEncoding("utf8");
process.stdin.on("data", (chunk: string) => {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) {
    const group = Number(line.slice(1));
    if (line.startsWith("+")) groups.add(group);
    else groups.delete(group);
  }
});
process.stdin.on("close", () => {
  for (const group of groups) {
    try {
      process.kill(-group, "SIGKILL");
    } catch {
      // It has ended by itself.
    }
  }
});
// Signals that end a whole terminal session must not end the one process that cleans up after it.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
