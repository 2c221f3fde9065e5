import type { LogOutput } from "../output/log-output.ts";

/** Resolves at the first SIGTERM or SIGINT. The second one ends the process at once. */
export function onStop(output: LogOutput): Promise<void> {
  return new Promise((resolve) => {
    let isStopping = false;
    for (const [signal, code] of [
      ["SIGTERM", 143],
      ["SIGINT", 130],
    ] as const) {
      process.on(signal, () => {
        if (isStopping) process.exit(code);
        isStopping = true;
        output.say(
          `${signal}: waiting for running jobs; send it again to stop at once.`,
          { signal },
          "stopping",
        );
        resolve();
      });
    }
  });
}
