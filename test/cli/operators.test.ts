import { userInfo } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it, vi } from "vitest";
import { defineJob, type Engine, openEngine, processor } from "../../src/index.ts";
import { diary } from "../engine/saga-stage.ts";
import { createDatabase, type TestPostgres } from "../postgres.ts";
import { RunningCommand } from "../server/command.ts";
import { fileFolder } from "../support/folders.ts";
import { answer, curfew } from "./stage.ts";

const quick = defineJob({ type: "quick", queue: "quick", retention: { completed: "7d" } });
const limited = defineJob({ type: "limited", queue: "slow", limit: { key: "bank 1", concurrency: 1 } });
const { saga } = diary((context) => {
  context.request("rung", { after: "1h" }, { text: "late" });
});

/** A store with sagas, timeouts, limits and ended jobs. */
async function prepare(engine: Engine): Promise<{ readonly limitedId: string }> {
  const host = engine.host([saga]);
  for (const id of ["a-1", "b-2"]) {
    await engine.send(saga, "begun", { id, text: "x" });
    await vi.waitUntil(() => engine.saga(saga, id).load(), { timeout: 60_000 });
  }
  await host.close();
  await engine.timeouts.insert({ id: "ring", destination: "bell", dueAt: { after: "2h" }, payload: {} });
  await engine.timeouts.insert({ id: "broken", destination: "bell", dueAt: { after: "1s" }, payload: {} });
  await engine.store.timeouts.release([{ id: "broken", isDead: true, error: "no bell" }], {
    now: engine.now(),
  });
  const worker = engine.work({ processors: [processor(quick, () => 1)] });
  const done = await engine.enqueueMany(quick, [undefined, undefined, undefined]);
  await Promise.all(done.map((job) => job.result()));
  await worker.close();
  await engine.enqueue(limited);
  const second = await engine.enqueue(limited);
  return { limitedId: second.id };
}

interface Place {
  readonly flags: readonly string[];
  readonly limitedId: string;
}
const places = new Map<string, Place>();
const place = (name: string) => places.get(name) as Place;
const folder = fileFolder();
let server: RunningCommand;
let database: TestPostgres;
beforeAll(async () => {
  database = await createDatabase(inject("postgresUrl"));
  for (const [name, store] of [
    ["sqlite", `sqlite:${join(folder, "a.db")}`],
    ["server", `sqlite:${join(folder, "b.db")}`],
    ["postgres", database.url],
  ] as const) {
    const engine = await openEngine({ store });
    const { limitedId } = await prepare(engine);
    await engine.close();
    places.set(name, { flags: ["--store", store], limitedId });
  }
  server = new RunningCommand(["serve", "--port", "0", ...place("server").flags], { cwd: folder });
  const [url] = await server.said(/http:\/\/[^\s"]+:\d+/);
  places.set("server", { ...place("server"), flags: ["--url", url] });
});
afterAll(async () => {
  server.kill("SIGKILL");
  await server.ended;
  await database[Symbol.asyncDispose]();
});

describe.each(["sqlite", "server", "postgres"])("on %s", (name) => {
  const ask = (...words: string[]) => answer([...words, ...place(name).flags]);
  const run = (...words: string[]) => curfew([...words, ...place(name).flags]);

  it("sagas are listed by type and shown with their timeouts", async () => {
    const { items, has_more } = await ask("sagas", "ls", "--type", "diary");
    expect(has_more).toBe(false);
    expect(items).toMatchObject([
      { type: "diary", id: "b-2" },
      { type: "diary", id: "a-1", status: "alive", pending: [{ name: "rung" }] },
    ]);
    const { items: ascending } = await ask("sagas", "ls", "--type", "diary", "--ascending");
    expect(ascending.map(({ id }) => id)).toEqual(["a-1", "b-2"]);
    expect((await ask("sagas", "ls", "--limit", "1")).items).toHaveLength(1);
    expect((await ask("sagas", "ls", "--type", "other")).items).toEqual([]);
    const shown = await ask("sagas", "show", "diary", "a-1");
    expect(shown).toMatchObject({
      id: "a-1",
      state: { texts: ["x"] },
      timeouts: [{ name: "rung" }],
      messages: [],
    });
    const { stdout } = await run("sagas", "show", "diary", "a-1");
    expect(stdout).toMatch(
      /^saga +diary a-1\nstatus +alive[\s\S]*\n[^\n]*pending +in 5\dm[^\n]*diary a-1 rung/,
    );
  });

  it("an unknown saga ends with 1", async () => {
    const { code, stdout, stderr } = await run("sagas", "show", "diary", "nobody");
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^curfew: .*nobody/);
  });

  it("timeouts are listed by time, destination and state", async () => {
    const all = await ask("timeouts", "ls");
    expect(all.items.map(({ id }) => id)).toContain("ring");
    const { items } = await ask("timeouts", "ls", "--destination", "bell", "--from", "90m", "--to", "3h");
    expect(items).toMatchObject([{ id: "ring", state: "pending", saga: null }]);
    expect((await ask("timeouts", "ls", "--dead")).items).toMatchObject([{ id: "broken", error: "no bell" }]);
    const { stdout } = await run("timeouts", "ls", "--dead");
    expect(stdout).toMatch(/^ID +STATE +DUE[\s\S]*broken +dead .*no bell\n$/);
  });

  it("a timeout is rescheduled and revoked, and a dead one is requeued", async () => {
    const moved = await ask("timeouts", "reschedule", "ring", "2035-01-01T00:00:00Z", "--reason", "later");
    expect(moved).toMatchObject({ id: "ring", due_at: "2035-01-01T00:00:00.000Z" });
    expect(await ask("timeouts", "requeue", "broken")).toMatchObject({ id: "broken", state: "pending" });
    const revoked = await run("timeouts", "revoke", "ring");
    expect(revoked).toMatchObject({ code: 0, stdout: "The timeout is revoked; it was pending.\n" });
    const again = await run("timeouts", "revoke", "no-such-timeout");
    expect(again).toMatchObject({ code: 1, stdout: "" });
    expect((await ask("timeouts", "ls", "--dead")).items).toEqual([]);
  });

  it("queues purge counts by age before it deletes", async () => {
    const purge = ["queues", "purge", "quick", "--states", "completed"];
    const recent = await ask(...purge, "--older-than", "1h", "--dry-run");
    expect(recent).toMatchObject({ matched: 0, matched_is_exact: true, purged: 0, dry_run: true });
    const ended = await ask(...purge, "--older-than", "0s", "--dry-run");
    expect(ended).toMatchObject({ matched: 3, matched_is_exact: true, purged: 0 });
    const asked = await run(...purge, "--older-than", "0s");
    expect(asked).toMatchObject({ code: 2, stdout: "" });
    expect(asked.stderr).toMatch(
      /Delete 3 completed jobs of queue quick that ended before .* UTC on .* for good\?/,
    );
    expect(await ask(...purge, "--older-than", "0s", "--yes")).toMatchObject({ matched: 3, purged: 3 });
    const waiting = await run("queues", "purge", "quick", "--older-than", "1h", "--dry-run");
    expect(waiting.code).toBe(2);
  });

  it("stats says how much there is, and how it was over time", async () => {
    expect(await ask("stats")).toMatchObject({ jobs: { available: 1, pending: 1 }, workers: 0 });
    expect(await ask("stats", "--queue", "quick")).toMatchObject({ jobs: { available: 0, completed: 3 } });
    const { history } = await ask("stats", "--since", "30m", "--step", "15m");
    const points = history as readonly { completed: number }[];
    expect(points.reduce((sum, { completed }) => sum + completed, 0)).toBe(3);
    const { stdout } = await run("stats", "--since", "30m", "--step", "15m");
    expect(stdout).toMatch(/^waiting +1 ready, 0 later, 0 to retry, 1 held/);
    expect(stdout).toMatch(/oldest wait +.* in slow/);
    expect(stdout).toMatch(/^FROM +ENQUEUED +COMPLETED/m);
    expect(stdout).toMatch(/ 3 +0 +0 +0 .*█{20}$/m);
  });

  it("advise says what the runs of a type need", async () => {
    const { items } = await ask("advise", "--type", "quick", "--attempt", "10s");
    expect(items).toMatchObject([
      { type: "quick", verdict: "unknown", what_if: { timeout_ms: 10_000, runs: 3 } },
    ]);
    const { stdout } = await run("advise");
    expect(stdout).toMatch(/^TYPE +VERDICT +TIMEOUT[\s\S]*\nquick +unknown[\s\S]*\nquick: /);
  });

  it.each([
    [["--floor", "1s", "--ceiling", "1m", "--times", "0"], "--times: 0 is"],
    [["--floor", "1s", "--ceiling", "1m", "--times", "x"], '--times: "x" is'],
    [["--floor", "1s", "--ceiling", "1m", "--from", "p42"], '--from: "p42" is'],
    [["--floor", "3s", "--ceiling", "1s"], '--floor: "3s" contradicts'],
    [["--samples", "200"], "--floor: it is missing; add it"],
  ])("advise refuses %j by the flag", async (flags, message) => {
    const { stderr } = await run("advise", "--type", "quick", ...flags);
    expect(stderr).toContain(`curfew: ${message}`);
  });

  it("a job that only its limit holds is held everywhere, and activate names the limit", async () => {
    const id = place(name).limitedId;
    const [listed, shown, why, refused] = await Promise.all([
      run("ls", "--state", "held"),
      run("show", id),
      run("why", id),
      run("activate", id),
    ]);
    expect(listed.stdout).toMatch(new RegExp(`^${id} +held .* by limit bank 1$`, "m"));
    expect(listed.stdout.trim().split("\n")).toHaveLength(2);
    expect(shown.stdout).toMatch(/^state +held by limit bank 1$/m);
    expect(why.stdout).toContain(`Job ${id} is held.`);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toContain(
      `job ${id} is held by its limit "bank 1"; run curfew limits set 'bank 1' --concurrency <count> to let more of them run`,
    );
  });

  it("a limit is listed, set and reset, and why names the command for it", async () => {
    const why = await run("why", place(name).limitedId);
    expect(why.stdout).toContain("run curfew limits set 'bank 1' --concurrency <count>");
    expect(await ask("limits", "set", "bank 1", "--concurrency", "5", "--rate", "100/1m")).toMatchObject({
      key: "bank 1",
      concurrency: 5,
      rate: { limit: 100, period: "PT60S" },
    });
    const { stdout } = await run("limits", "ls");
    expect(stdout).toMatch(/^KEY +AT ONCE +RATE +IN USE +WAITS/);
    expect(stdout).toMatch(/bank 1 +5 +100 per 1m .*set by an operator/);
    expect(await ask("limits", "reset", "bank 1")).toMatchObject({ concurrency: 1, rate: null });
    expect((await run("limits", "set", "bank 1")).stderr).toContain(
      "nothing to change; pass --concurrency or --rate",
    );
    expect((await run("limits", "set", "bank 1", "--rate", "fast")).code).toBe(2);
  });

  it("maintenance goes on and off, and says why", async () => {
    const on = await run("maintenance", "on", "--for", "30m", "--reason", "upgrade");
    expect(on.stdout).toMatch(
      /^Maintenance is on: no queue hands out jobs\. It began .*, ends in (29m|30m).*\nupgrade\n$/,
    );
    const why = await run("why", place(name).limitedId);
    expect(why.stdout).toContain("curfew maintenance off");
    expect(await ask("maintenance", "status")).toMatchObject({ enabled: true, reason: "upgrade" });
    expect(await ask("maintenance", "off")).toMatchObject({ enabled: false });
    expect((await run("maintenance", "status")).stdout).toBe("Maintenance is off: workers take jobs.\n");
  });

  it("activate refuses a job that is not pending, and an unknown one", async () => {
    const { id } = await ask("enqueue", "plain");
    const refused = await run("activate", String(id));
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(/available/);
    const unknown = await run("activate", "0198f7e2-7b1c-7000-8000-000000000001");
    expect(unknown.stderr).toContain("there is no job");
  });

  it("run makes a scheduled job due now, and refuses one that is not waiting for a time", async () => {
    const { id } = await ask("enqueue", "plain", "--in", "1h");
    const why = await run("why", String(id));
    expect(why.stdout).toContain(`curfew run ${id}`);
    expect(await ask("run", String(id), "--reason", "sooner")).toMatchObject({ id, state: "available" });
    const refused = await run("run", String(id));
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(/available/);
    const unknown = await run("run", "0198f7e2-7b1c-7000-8000-000000000001");
    expect(unknown.stderr).toContain("there is no job");
  });

  it("audit lists what operators did", async () => {
    const { items } = await ask("audit", "--limit", "200");
    expect(items.map(({ reason }) => reason)).toEqual(expect.arrayContaining(["later", "sooner"]));
    const who = place(name).flags[0] === "--url" ? "local" : `${userInfo().username}@`;
    for (const { actor } of items) expect(String(actor).startsWith(who)).toBe(true);
    const { stdout } = await run("audit", "--action", String(items[0]?.action));
    expect(stdout).toMatch(/^WHEN +WHO +ACTION/);
    const limits = await run("audit", "--action", "limit.put");
    expect(limits.stdout).toMatch(/ limit\.put +bank 1\n/);
  });
});
