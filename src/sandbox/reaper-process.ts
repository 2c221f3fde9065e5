/**
 * The entry of the reaper: a process that briefly outlives its parent. It knows the process groups that the parent
 * has started. When the pipe to the parent ends, it kills them, whatever ended the parent. A child in an endless loop
 * cannot notice the death of its parent.
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
      // The group has already ended.
    }
  }
});
// A signal that ends a terminal session must not end the process that cleans up after it.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
