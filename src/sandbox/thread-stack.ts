import type { Session } from "node:inspector";
import type { System } from "../ports/system.ts";
import { ASK, type Look, stackOf } from "./stack.ts";

/**
 * The JavaScript stack of a thread whose event loop is blocked. The debugger of this process reaches its threads
 * without a port, and V8 answers in the middle of a loop.
 */
export async function captureThreadStack(system: System, thread: number, limit: number): Promise<Look> {
  let session: Session | undefined;
  let timer: { cancel(): void } | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = system.after(limit, () => reject(new Error(`it did not answer the debugger within ${limit} ms`)));
  });
  try {
    // Not every Node has a debugger, and the permission model may forbid it.
    const inspector = await import("node:inspector");
    session = new inspector.Session();
    session.connect();
    return { stack: stackOf(await Promise.race([ask(session, thread), late])) };
  } catch (error) {
    return { because: (error as Error).message };
  } finally {
    timer?.cancel();
    late.catch(() => {});
    session?.disconnect();
  }
}

/** Attaching reports every thread. Only this one is asked. */
function ask(session: Session, thread: number): Promise<unknown> {
  return new Promise((resolve, reject) => {
    session.on("NodeWorker.attachedToWorker", ({ params: { sessionId, workerInfo } }) => {
      if (!workerInfo.title.startsWith(`[worker ${thread}]`)) return;
      const params = { expression: ASK, returnByValue: true, silent: true };
      const message = JSON.stringify({ id: 1, method: "Runtime.evaluate", params });
      session.post("NodeWorker.sendMessageToWorker", { sessionId, message });
    });
    session.on("NodeWorker.receivedMessageFromWorker", ({ params }) => {
      try {
        const answer = JSON.parse(params.message);
        if (answer?.id === 1) resolve(answer.result?.result?.value);
      } catch (error) {
        reject(error);
      }
    });
    session.post("NodeWorker.enable", { waitForDebuggerOnStart: false }, (error) => error && reject(error));
  });
}
