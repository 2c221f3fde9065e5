import { defineJob, type Processor } from "../../../src/index.ts";
import type { Carrier, CarrierEvents } from "../../../src/sandbox/carrier.ts";
import { Pool } from "../../../src/sandbox/pool.ts";
import { encodeError } from "../../../src/sandbox/protocol.ts";

/** What becomes of a sandbox that is started: it loads for ever, is ready at once, or cannot be loaded. */
type Load = "never" | "at-once" | "fails";

/** A sandboxed processor on the real pool, whose children are no processes: virtual time does not wait for those. */
export function sandboxedJob(load: Load, size = 1) {
  const definition = defineJob({ type: "image.resize" });
  const sandbox: NonNullable<Processor["sandbox"]> = (host) =>
    new Pool(host, {
      module: "file:///resize.js",
      type: definition.type,
      open: ({ system }, events) => child(load, events, system.after),
      size,
      spare: 0,
      load: 3_600_000,
      loading: 10,
      jobs: Number.POSITIVE_INFINITY,
      age: Number.POSITIVE_INFINITY,
      memory: Number.POSITIVE_INFINITY,
      reaps: false,
    });
  const handler = () => {
    throw new Error("it runs in its sandbox");
  };
  return { definition, processor: { definition, handler, sandbox } as unknown as Processor };
}

function child(
  load: Load,
  events: CarrierEvents,
  after: (delay: number, callback: () => void) => unknown,
): Carrier {
  if (load === "at-once") after(5, () => events.onReport({ say: "ready", protocol: 1 }));
  const error = encodeError(new Error("Cannot find module 'sharp'"));
  if (load === "fails") after(5, () => events.onReport({ say: "unloadable", error } as never));
  return {
    send: () => {},
    kill: () => void after(2, () => events.onExit({ code: null, signal: "SIGKILL", isHeardOut: true })),
    memory: () => undefined,
    capture: async () => ({ because: "it is no process" }),
    silence: () => ({ isAsleep: false, says: "nothing is seen" }),
  } as unknown as Carrier;
}
