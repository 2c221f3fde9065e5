import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answer, curfew, openStage, type Stage } from "./stage.ts";

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage.close());

/** Leaves out what differs from one question to the next. */
function withoutTime(value: unknown): unknown {
  const text = JSON.stringify(value, (key, each) =>
    ["asked_at", "instants", "throughput", "last_heartbeat_at"].includes(key) ? undefined : each,
  );
  return JSON.parse(text.replaceAll(/for (about )?\d+ ?m?s/g, "for a while"));
}

type Flags = (stage: Stage) => readonly string[];

const QUESTIONS: readonly (readonly [name: string, flags: Flags, shape: object])[] = [
  ["ls", () => ["ls", "--queue", "reports"], { has_more: false, items: expect.any(Array) }],
  ["show", ({ jobs }) => ["show", jobs.done], { state: "completed", result: { said: "hello" } }],
  [
    "why",
    ({ jobs }) => ["why", jobs.waiting],
    { state: "available", reasons: [{ code: expect.any(String), action: { name: "start-worker" } }] },
  ],
  ["explain", ({ jobs }) => ["explain", jobs.dead], { fixed: true, fields: expect.any(Array) }],
  ["queues ls", () => ["queues", "ls"], { items: expect.any(Array) }],
  ["dead ls", () => ["dead", "ls"], { items: [{ type: "card.charge", dead_letter: true }], has_more: false }],
  ["cron show", () => ["cron", "show", "nightly"], { expression: "0 3 * * *", runs: [] }],
  ["cron next", () => ["cron", "next", "nightly", "-n", "3"], { timezone: "Europe/Berlin" }],
  ["workflows show", ({ workflow }) => ["workflows", "show", workflow], { state: "running", jobs_total: 2 }],
  ["workers ls", () => ["workers", "ls"], { summary: { running: 0 } }],
];

describe("a question", () => {
  it.each(QUESTIONS)(
    "%s has the same answer from the store and from a server on it",
    async (_name, flags, shape) => {
      const [fromStore, fromServer] = await Promise.all([
        answer([...flags(stage), "--store", stage.store]),
        answer([...flags(stage), "--url", stage.url]),
      ]);
      expect(fromStore).toMatchObject(shape);
      expect(withoutTime(fromServer)).toEqual(withoutTime(fromStore));
    },
  );

  it("is answered for people in a table that names what there is", async () => {
    const { code, stdout } = await curfew(["queues", "ls", "--url", stage.url]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^QUEUE +STATE +READY/);
    expect(stdout).toMatch(/^reports +active +2 .* no worker takes it$/m);
    expect(stdout).not.toContain("\u001b");
  });

  it("why names the reason and the command that helps", async () => {
    await curfew(["queues", "pause", "reports", "--url", stage.url]);
    const { stdout } = await curfew(["why", stage.jobs.waiting, "--url", stage.url]);
    await curfew(["queues", "resume", "reports", "--url", stage.url]);
    expect(stdout).toContain('1. Queue "reports" has been paused for');
    expect(stdout).toContain("curfew queues resume reports");
  });

  it("takes the beginning of an id, and lists the candidates if several jobs have it", async () => {
    const id = stage.jobs.waiting;
    const [shown, why, many] = await Promise.all([
      curfew(["show", id.slice(0, 35), "--store", stage.store]),
      curfew(["why", id.slice(0, 35).toUpperCase(), "--url", stage.url]),
      curfew(["explain", id.slice(0, 8), "--url", stage.url]),
    ]);
    expect(shown.stdout).toContain(id);
    expect(why.stdout).toContain(`Job ${id} is available.`);
    expect(many).toMatchObject({ code: 1, stdout: "" });
    expect(many.stderr).toContain(`begin with ${id.slice(0, 8)}; name one of them:\n`);
    expect(many.stderr).toContain(`\n  ${id}  report.build\n`);
  });

  it("about a queue that nobody knows says so, and names the one that was meant", async () => {
    const [listed, paused, resumed] = await Promise.all([
      curfew(["ls", "--queue", "reprots", "--url", stage.url]),
      curfew(["queues", "pause", "greting", "--url", stage.url]),
      curfew(["queues", "resume", "payments", "--url", stage.url]),
    ]);
    expect(listed).toMatchObject({
      code: 0,
      stdout: "No jobs.\n",
      stderr: "no such queue: no job or worker knows reprots; did you mean reports?\n",
    });
    expect(paused).toMatchObject({ code: 0, stdout: "Queue greting is paused.\n" });
    expect(paused.stderr).toBe("no job or worker knows queue greting; did you mean greetings?\n");
    expect(resumed).toMatchObject({ code: 0, stdout: "Queue payments was not paused.\n", stderr: "" });
  });

  it("logs of a job that wrote nothing says so on standard error", async () => {
    const ended = await curfew(["logs", stage.jobs.waiting, "--url", stage.url]);
    expect(ended).toMatchObject({ code: 0, stdout: "", stderr: "No log lines.\n" });
  });

  it("logs prints the lines of a job, and with --follow ends when the job has ended", async () => {
    const [plain, followed] = await Promise.all([
      curfew(["logs", stage.jobs.done, "--url", stage.url, "--json"]),
      curfew(["logs", stage.jobs.done, "-f", "--store", stage.store]),
    ]);
    expect(JSON.parse(plain.stdout)).toMatchObject({ message: "hello", fields: { to: "you" } });
    expect(followed).toMatchObject({ code: 0, stdout: expect.stringMatching(/ hello \{"to":"you"\}\n$/) });
  });

  it("tail prints recorded events, one JSON document per line", async () => {
    const { stdout } = await curfew(["tail", "--job", stage.jobs.dead, "--url", stage.url, "--json"]);
    const types = stdout
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { type: string }).type);
    expect(types).toContain("job.started");
    expect(types.at(-1)).toBe("job.discarded");
  });
});
