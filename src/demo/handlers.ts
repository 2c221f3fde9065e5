import { type Processor, processor } from "../engine/attempt/processor.ts";
import { startFile } from "../ports/start-file.ts";
import { rest, type System } from "../ports/system.ts";
import { sandboxed } from "../sandbox/sandboxed.ts";
import * as jobs from "./jobs.ts";

const RENDER_REPORT = startFile("demo/render-report");

const SILENT_AT = 6;

/** An error with a cause, as a client of a network service throws it. */
function refusedConnection(): Error {
  const cause = Object.assign(new Error("connect ECONNREFUSED 10.2.0.14:443"), { code: "ECONNREFUSED" });
  return new Error("The receiver did not answer", { cause });
}

export function handlers(system: System): Processor[] {
  const between = (least: number, most: number) => least + system.random() * (most - least);
  const work = (least: number, most: number) => rest(system, between(least, most));
  return [
    processor(jobs.mail, async () => void (await work(60, 400))),
    processor(jobs.newsletter, async () => void (await work(500, 2_000))),
    processor(jobs.resize, ({ payload }) => rest(system, payload.takes)),
    sandboxed(jobs.render, RENDER_REPORT, { memory: "256mb", size: 2 }),
    processor(jobs.upload, async ({ log }) => {
      log("uploading; this handler does not look at its signal");
      await rest(system, 30_000);
      log("done, but nobody takes this result: the fence is void");
    }),
    processor(jobs.webhook, async ({ payload, attempt, log }) => {
      await work(200, 900);
      log(`POST ${payload.url}`, { attempt });
      if (system.random() < 0.55) throw refusedConnection();
      return { status: 200 };
    }),
    processor(jobs.sync, async () => void (await work(2_000, 5_000))),
    processor(jobs.reindex, async ({ payload, attempt, lastCheckpoint, progress, checkpoint, log }) => {
      const done = typeof lastCheckpoint === "number" ? lastCheckpoint : 0;
      if (done > 0) log(`goes on after page ${done}`);
      for (let page = done + 1; page <= payload.pages; page++) {
        await work(700, 1_100);
        if (attempt === 1 && page === SILENT_AT) await new Promise(() => {});
        progress(page / payload.pages, `page ${page} of ${payload.pages}`);
        await checkpoint(page);
      }
      return { pages: payload.pages };
    }),
    processor(jobs.charge, async ({ payload }) => {
      await work(300, 900);
      if (payload.isDeclined) throw Object.assign(new Error("The card was declined"), { code: "declined" });
      return { charged: payload.cents };
    }),
    processor(jobs.offer, async () => void (await rest(system, 6_000))),
    processor(jobs.ledger, async ({ progress, signal }) => {
      for (let account = 1; account <= 30; account++) {
        await rest(system, 1_000);
        signal.throwIfAborted();
        progress(account / 30, `account ${account} of 30`);
      }
      return { accounts: 30 };
    }),
    processor(jobs.encode, async ({ progress, signal }) => {
      for (let second = 1; second <= 90; second++) {
        await rest(system, 1_000);
        signal.throwIfAborted();
        progress(second / 90, `${second} of 90 seconds`);
      }
    }),
    processor(jobs.rates, async () => void (await work(300, 1_500))),
    processor(jobs.check, async () => void (await work(1_000, 3_000))),
    processor(jobs.reserve, async () => void (await work(2_000, 6_000))),
    processor(jobs.pack, async () => void (await work(2_000, 8_000))),
    processor(jobs.ship, async ({ payload }) => {
      await work(1_000, 3_000);
      if (payload.isRefused) throw new Error("No carrier delivers to this address");
      return { parcel: `${payload.order}-1` };
    }),
  ];
}
