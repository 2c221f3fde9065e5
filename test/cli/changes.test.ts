import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answer, curfew, openStage, type Stage } from "./stage.ts";

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage.close());

describe.each(["store", "url"] as const)("with --%s", (kind) => {
  const target = () => [`--${kind}`, stage[kind]];

  it("a job is enqueued, extended, cancelled, waited for and deleted", async () => {
    const enqueued = await curfew([
      "enqueue",
      "mail.send",
      '{"to":"you"}',
      "--queue",
      "mail",
      "--in",
      "1h",
      ...target(),
    ]);
    expect(enqueued.code).toBe(0);
    const id = enqueued.stdout.trim();
    expect(enqueued.stderr).toContain(`curfew wait ${id}`);
    expect(await answer(["extend", id, "--attempt", "5m", "--priority", "7", ...target()])).toMatchObject({
      state: "scheduled",
      timeout_ms: 300_000,
      priority: 7,
      args: [{ to: "you" }],
    });
    const early = await curfew(["wait", id, "--timeout", "0s", ...target()]);
    expect(early).toMatchObject({ code: 1, stdout: "" });
    expect(early.stderr).toContain(`job ${id} is scheduled after 0s`);
    const live = await curfew(["delete", id, ...target()]);
    expect(live.code).toBe(1);
    expect(live.stderr).toContain("only ended jobs can be deleted");
    expect(await answer(["cancel", id, ...target()])).toMatchObject({
      succeeded: 1,
      failed: 0,
      is_complete: true,
    });
    const waited = await curfew(["wait", id, ...target()]);
    expect(waited).toMatchObject({ code: 1, stdout: `${id} cancelled\n` });
    expect(await answer(["delete", id, ...target()])).toMatchObject({ succeeded: 1 });
    const gone = await curfew(["show", id, ...target()]);
    expect(gone).toMatchObject({ code: 1, stdout: "" });
  });

  it.each([
    [["--in", "10m", "--wait", "1m"], /^curfew: --wait: "60s" ends .*; --in starts it .*: lengthen --wait /],
    [["--total", "1s", "--attempt", "5s"], /^curfew: --total: "1000ms" .* shorter than --attempt \(5s\)/],
    [["--id", "5"], /^curfew: --id: "5" is not valid/],
    [["--meta", "5"], /^curfew: --meta: 5 is not valid/],
  ])("enqueue refuses %j by the flag", async (flags, says) => {
    const { code, stderr } = await curfew(["enqueue", "mail.send", ...flags, ...target()]);
    expect(stderr).toMatch(says);
    expect(code).toBe(2);
  });

  it("a queue is limited, and its limit taken back", async () => {
    const set = await answer([
      "queues",
      "limit",
      "mail",
      "--concurrency",
      "3",
      "--max-depth",
      "100",
      ...target(),
    ]);
    expect(set.configuration).toMatchObject({
      concurrency: 3,
      backpressure: { max_depth: 100, strategy: "reject" },
    });
    const taken = await answer([
      "queues",
      "limit",
      "mail",
      "--concurrency",
      "none",
      "--max-depth",
      "none",
      ...target(),
    ]);
    expect(taken.configuration).toEqual({});
  });

  it("a queue is purged after a count", async () => {
    await answer(["enqueue", "mail.send", "--queue", `purged-${kind}`, ...target()]);
    const purge = ["queues", "purge", `purged-${kind}`, ...target()];
    expect(await answer([...purge, "--dry-run"])).toMatchObject({ matched: 1, purged: 0, dry_run: true });
    expect(await answer([...purge, "--yes"])).toMatchObject({ matched: 1, purged: 1, is_complete: true });
    expect(await answer([...purge, "--yes"])).toMatchObject({ matched: 0, purged: 0 });
  });

  it("a cron is paused, run by hand and resumed", async () => {
    expect(await answer(["cron", "pause", "nightly", ...target()])).toMatchObject({ enabled: false });
    expect(await answer(["cron", "run", "nightly", ...target()])).toMatchObject({ type: "report.build" });
    expect(await answer(["cron", "resume", "nightly", ...target()])).toMatchObject({ enabled: true });
  });

  it("a dead letter is retried by the type of its error", async () => {
    if (kind === "store") {
      const none = await answer(["dead", "retry", "--error-type", "NoSuchError", "--yes", ...target()]);
      expect(none).toMatchObject({ matched: 0, succeeded: 0 });
      return;
    }
    const { error } = await answer(["show", stage.jobs.dead, ...target()]);
    const { type } = error as { type: string };
    expect(await answer(["dead", "retry", "--error-type", type, "--yes", ...target()])).toMatchObject({
      matched: 1,
      succeeded: 1,
      skipped: 0,
      failed: 0,
      is_complete: true,
    });
    expect((await answer(["dead", "ls", ...target()])).items).toEqual([]);
  });
});
