import { once } from "node:events";
import { realSystem } from "../../../src/engine/runtime/real-system.ts";
import { openEngine, silentLogger } from "../../../src/index.ts";
import { openTimeouts } from "../../../src/timeouts.ts";

/** One process of the tests in timeouts.test.ts: what it does, on which store, and how far its clock is off. */
const [deed = "", store = "", skew = "0"] = process.argv.slice(2);

function tell(message: unknown): Promise<void> {
  return new Promise((resolve) => process.send?.(message, () => resolve()));
}

const DEEDS: Record<string, () => Promise<void>> = {
  /** Claims once, waits for the others that do, claims until nothing is due, and tells what it got. */
  async claim() {
    const system = { ...realSystem, wall: () => realSystem.wall() + Number(skew) };
    const timeouts = await openTimeouts({ store, system });
    const go = once(process, "message");
    await tell("ready");
    await go;
    const ids = (await timeouts.claimDue({ limit: 7 })).map(({ id }) => id);
    const goOn = once(process, "message");
    await tell("claimed");
    await goOn;
    for (let idle = 0; idle < 3; ) {
      const claimed = await timeouts.claimDue({ limit: 7 });
      idle = claimed.length === 0 ? idle + 1 : 0;
      ids.push(...claimed.map(({ id }) => id));
    }
    await timeouts.close();
    await tell(ids);
    process.disconnect();
  },
  /** Claims once, tells what it holds, and waits to be killed. */
  async hold() {
    // Longer than a busy machine takes to kill this process and to look at its timeouts.
    const timeouts = await openTimeouts({ store, lease: "10s" });
    const claimed = await timeouts.claimDue();
    await tell(claimed.map(({ id, owner, leaseUntil }) => ({ id, owner, leaseUntil })));
    realSystem.after(60_000, () => {}, { keepAlive: true });
  },
  /** Delivers what is due, and prints each with the store's time, until it is killed. */
  async serve() {
    const engine = await openEngine({ store, timeoutLease: "1s", logger: silentLogger });
    engine.timeouts.serve("mail", async ({ id, dueAt }) => {
      await tell({ id, early: dueAt - engine.now() });
      await new Promise<void>((resolve) => realSystem.after(5, resolve));
    });
    await tell("ready");
  },
};

await DEEDS[deed]?.();
