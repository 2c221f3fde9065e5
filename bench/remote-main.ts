/** The process of a RemoteWorker. */
import type { Handler } from "./contender.ts";
import { contenderOf } from "./contenders/all.ts";
import { INNOCENT_FOR, VICTIM } from "./recovery.ts";
import { monotonic, type RemoteHandler, sleep, type Told } from "./remote.ts";

const [key, place, kind] = process.argv.slice(2) as [string, string, RemoteHandler];

function tell(n: number, is: Told["is"]): void {
  process.send?.({ n, at: monotonic(), is } satisfies Told);
}

const HANDLERS: Record<RemoteHandler, Handler> = {
  tell: (n) => tell(n, "started"),
  async recovery(n, beat) {
    tell(n, "started");
    const endsAt = n === VICTIM ? Number.POSITIVE_INFINITY : monotonic() + INNOCENT_FOR;
    for (; monotonic() < endsAt; beat()) await sleep(50);
    tell(n, "ended");
  },
};

const contender = await contenderOf(key).open(place, { short: kind === "recovery" });
process.send?.("ok");
process.once("message", async () => {
  await contender.work(10, HANDLERS[kind]);
  process.send?.("ok");
});
