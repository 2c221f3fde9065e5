/**
 * The entry of a sandbox, as a process or as a thread: loads the module and runs the attempts that the parent sends.
 * It trusts its parent and holds nothing of value; the parent trusts nothing that it says.
 */
import { Socket } from "node:net";
import { isMainThread, parentPort } from "node:worker_threads";
import { CurfewError } from "../core/errors.ts";
import { ChildAttempt, type LoadedModule } from "./child-attempt.ts";
import { captureOutput } from "./child-output.ts";
import { decodeReason, encodeError, FrameReader, type Order, PROTOCOL, type Report } from "./protocol.ts";

/** How often the event loop says that it runs, while there is work. */
const ALIVE_EVERY = 100;
/** The descriptor of the pipe to the parent. It is not Node's own channel, so nothing in the module can speak on it by mistake. */
const PIPE = 3;

let loaded: LoadedModule | undefined;
let current: ChildAttempt | undefined;
let pulse: NodeJS.Timeout | undefined;
let resourcesBefore: readonly string[] = [];
const send = isMainThread ? openPipe() : openPort();
captureOutput();

/** Over a pipe the parent's death is the end of the stream; the whole group goes with it, grandchildren included. */
function openPipe(): (text: string) => void {
  const socket = new Socket({ fd: PIPE, readable: true, writable: true });
  const frames = new FrameReader(Number.POSITIVE_INFINITY);
  socket.on("data", (chunk: Buffer) => {
    for (const line of frames.push(chunk)) follow(JSON.parse(line) as Order);
  });
  socket.on("error", endWithParent);
  socket.on("close", endWithParent);
  process.on("uncaughtExceptionMonitor", (error) => tell({ say: "crashed", error: encodeError(error) }));
  return (text) => void socket.write(`${text}\n`);
}

function endWithParent(): void {
  try {
    process.kill(-process.pid, "SIGKILL");
  } catch {
    process.exit(1);
  }
}

/** A thread ends with its process, so there is nothing to watch; flags of its own it has none. */
function openPort(): (text: string) => void {
  process.setSourceMapsEnabled(true);
  parentPort?.on("message", (text: string) => follow(JSON.parse(text) as Order));
  return (text) => parentPort?.postMessage(text);
}

function tell(report: Report): void {
  send(JSON.stringify(report));
}

function follow(order: Order): void {
  if (order.say === "load") void load(order);
  else if (order.say === "run") run(order);
  else if (order.key !== current?.key) return;
  else if (order.say === "deadline") current.deadline(order.deadline, order.remaining);
  else if (order.say === "answer") current.answered(order.number, order.value, order.error);
  else {
    tell({ say: "heard", key: order.key, resources: newResources() });
    current.abort(decodeReason(order.reason));
  }
}

/** What keeps the event loop busy now and did not before the attempt: what its handler may be waiting for. */
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
      throw new Error(`the parent speaks version ${order.protocol} of the protocol, this child ${PROTOCOL}`);
    loaded = checkModule(await import(order.module), order);
    tell({ say: "ready", protocol: PROTOCOL });
  } catch (error) {
    tell({ say: "unloadable", error: encodeError(error) });
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
    const says = `its processor is for "${definition.type}" and not for "${type}"`;
    throw new CurfewError("invalid_module", `${url}: ${says}; name the module of this definition`);
  }
  const hook = module.onCleanup;
  return { definition, handler, onCleanup: typeof hook === "function" ? (hook as never) : undefined };
}

function run({ key, job }: Extract<Order, { say: "run" }>): void {
  if (!loaded) throw new Error("an attempt was sent before the module was loaded");
  const attempt = new ChildAttempt(key, job, loaded, tell, () => {
    tell({ say: "idle", key });
    if (current !== attempt) return;
    current = undefined;
    clearInterval(pulse);
  });
  current = attempt;
  resourcesBefore = process.getActiveResourcesInfo();
  clearInterval(pulse);
  pulse = setInterval(() => tell({ say: "alive", key }), ALIVE_EVERY).unref();
  attempt.run();
}
