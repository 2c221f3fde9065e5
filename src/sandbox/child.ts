/**
 * The entry of a sandbox, as a process or as a thread. It loads the module and runs the attempts that the parent
 * sends. It trusts its parent and has nothing of value. The parent trusts nothing that it sends.
 */
import { Socket } from "node:net";
import { isMainThread, parentPort } from "node:worker_threads";
import { CurfewError } from "../core/errors.ts";
import { ChildAttempt, type LoadedModule } from "./child-attempt.ts";
import { captureOutput } from "./child-output.ts";
import { decodeReason, encodeError, FrameReader, type Order, PROTOCOL, type Report } from "./protocol.ts";

/** How often the child reports that its event loop runs, in milliseconds, during an attempt. */
const ALIVE_EVERY = 100;
/**
 * The descriptor of the pipe to the parent. It is not Node's IPC channel, so the module cannot write to it by
 * mistake.
 */
const PIPE = 3;

let loaded: LoadedModule | undefined;
let current: ChildAttempt | undefined;
let aliveTimer: NodeJS.Timeout | undefined;
let resourcesBefore: readonly string[] = [];
const send = isMainThread ? openPipe() : openPort();
captureOutput();

/** The death of the parent ends the stream. Then the whole process group ends, including grandchildren. */
function openPipe(): (text: string, onWritten?: () => void) => void {
  const socket = new Socket({ fd: PIPE, readable: true, writable: true });
  const frames = new FrameReader(Number.POSITIVE_INFINITY);
  socket.on("data", (chunk: Buffer) => {
    for (const line of frames.push(chunk)) follow(JSON.parse(line) as Order);
  });
  socket.on("error", endWithParent);
  socket.on("close", endWithParent);
  process.on("uncaughtExceptionMonitor", (error) => report({ say: "crashed", error: encodeError(error) }));
  return (text, onWritten) => void socket.write(`${text}\n`, onWritten);
}

function endWithParent(): void {
  try {
    process.kill(-process.pid, "SIGKILL");
  } catch {
    // There are no process groups here.
  }
  // The first process of a namespace survives its own signals. Its exit ends all others there.
  process.exit(1);
}

/** A thread ends with its process, so it need not watch its parent. It has no flags of Node. */
function openPort(): (text: string, onWritten?: () => void) => void {
  process.setSourceMapsEnabled(true);
  parentPort?.on("message", (text: string) => follow(JSON.parse(text) as Order));
  return (text, onWritten) => {
    parentPort?.postMessage(text);
    onWritten?.();
  };
}

function report(message: Report, onWritten?: () => void): void {
  send(JSON.stringify(message), onWritten);
}

function follow(order: Order): void {
  if (order.say === "load") void load(order);
  else if (order.say === "run") run(order);
  else if (order.key !== current?.key) return;
  else if (order.say === "deadline") current.deadline(order.deadline, order.remaining);
  else if (order.say === "answer") current.answered(order.number, order.value, order.error);
  else {
    report({ say: "heard", key: order.key, resources: newResources() });
    current.abort(decodeReason(order.reason));
  }
}

/** Resources that are active now and were not before the attempt: what its handler may be waiting for. */
function newResources(): string[] {
  const before = [...resourcesBefore];
  return process.getActiveResourcesInfo().filter((name) => {
    const index = before.indexOf(name);
    if (index >= 0) before.splice(index, 1);
    return index < 0;
  });
}

async function load(order: Extract<Order, { say: "load" }>): Promise<void> {
  try {
    if (order.protocol !== PROTOCOL)
      throw new Error(
        `protocol: the parent has version ${order.protocol}, this child ${PROTOCOL}; install one version of curfew`,
      );
    loaded = checkModule(await import(order.module), order);
    report({ say: "ready", protocol: PROTOCOL });
  } catch (error) {
    report({ say: "unloadable", error: encodeError(error) });
  }
}

function checkModule(
  module: { default?: Partial<LoadedModule>; onCleanup?: unknown },
  { module: url, type }: Extract<Order, { say: "load" }>,
): LoadedModule {
  const { definition, handler } = module.default ?? {};
  if (definition === undefined || typeof handler !== "function") {
    const fix = "write `export default processor(definition, handler)`";
    throw new CurfewError("invalid_module", `${url}: its default export is not a processor; ${fix}`);
  }
  if (definition.type !== type) {
    const says = `its processor is for "${definition.type}", expected "${type}"`;
    throw new CurfewError("invalid_module", `${url}: ${says}; name the module of this definition`);
  }
  const hook = module.onCleanup;
  return { definition, handler, onCleanup: typeof hook === "function" ? (hook as never) : undefined };
}

function run({ key, job }: Extract<Order, { say: "run" }>): void {
  if (!loaded) throw new Error("an attempt was sent before the module was loaded");
  const attempt = new ChildAttempt(
    key,
    job,
    loaded,
    (message) => report(message),
    () => {
      report({ say: "idle", key });
      if (current !== attempt) return;
      current = undefined;
      clearInterval(aliveTimer);
    },
  );
  current = attempt;
  resourcesBefore = process.getActiveResourcesInfo();
  clearInterval(aliveTimer);
  aliveTimer = setInterval(() => report({ say: "alive", key }), ALIVE_EVERY).unref();
  // The parent gives an attempt that was not entered to another child. So it must have this even if the handler ends
  // the process at once.
  report({ say: "entered", key }, () => attempt.run());
}
