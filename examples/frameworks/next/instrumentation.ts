/** Next calls this once when a server starts, before the first request. */
export async function register(): Promise<void> {
  // Neither the edge runtime nor a platform of functions has a process that stays: there, /api/work is the worker.
  if (process.env.NEXT_RUNTIME !== "nodejs" || process.env.VERCEL) return;
  const { startWorker } = await import("./worker.ts");
  await startWorker();
}
