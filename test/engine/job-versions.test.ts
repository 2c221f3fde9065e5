import { expect, it } from "vitest";
import { defineJob, processor } from "../../src/index.ts";
import { openClientStage } from "../server/client-stage.ts";
import { openStage as openServer } from "../server/stage.ts";
import { openStage } from "./stage.ts";

const made = (version: number) => defineJob({ type: "ver.job", version });

it("a worker runs the versions that its definition names; others wait, and why says so", async () => {
  const stage = await openStage();
  const ran: unknown[] = [];
  const old = defineJob({ type: "ver.job", versions: [1] });
  stage.work([processor(old, ({ id }) => void ran.push(id))]);
  const second = await stage.engine.enqueue(made(2), undefined);
  const first = await stage.engine.enqueue(made(1), undefined);
  const plain = await stage.engine.enqueue(defineJob({ type: "ver.job" }), undefined);
  await stage.advance("3s");
  expect(ran.toSorted()).toEqual([first.id, plain.id].toSorted());
  await stage.advance("15s");
  const { reasons } = await stage.engine.why(second.id);
  const said = reasons.map(({ sentence }) => sentence).join(" ");
  expect(said).toContain('It is of version 2 of ver.job, and the workers of queue "default" run only "1"');
  stage.work([
    processor(defineJob({ type: "ver.job", versions: [2, "3.1.0"] }), ({ id }) => void ran.push(id)),
  ]);
  // Either worker may claim it first, each time with the same chance.
  await stage.advance("30s");
  expect(ran).toContain(second.id);
});

it("a fetch names versions, and gets no other ones", async () => {
  await using stage = await openServer();
  for (const version of [1, 2, "1.4.0"]) await stage.post("/jobs", { type: "ver.job", args: [], version });
  await stage.post("/jobs", { type: "other.job", args: [] });
  const versions = { "ver.job": [2] };
  const seen: unknown[] = [];
  for (let nth = 0; nth < 4; nth++) {
    const { body } = await stage.post("/workers/fetch", { queues: ["default"], count: 10, versions });
    for (const { type, version } of body.jobs) seen.push([type, version]);
  }
  expect(seen).toEqual([
    ["ver.job", 2],
    ["other.job", undefined],
  ]);
  const { body } = await stage.post("/workers/fetch", { queues: ["default"], count: 10 });
  expect(body.jobs.map(({ version }: { version: unknown }) => version).toSorted()).toEqual([1, "1.4.0"]);
  expect((await stage.post("/workers/fetch", { queues: ["default"], versions: { a: ["x"] } })).status).toBe(
    400,
  );
});

it("a version whose workers ask often does not starve one whose worker asks rarely", async () => {
  await using stage = await openServer();
  const fetched: unknown[] = [];
  const fetch = async (version: number) => {
    const versions = { "ver.job": [version] };
    const { body } = await stage.post("/workers/fetch", { queues: ["default"], versions });
    for (const job of body.jobs) fetched.push(job.version);
  };
  await stage.post("/jobs", { type: "ver.job", args: [], version: 2 });
  for (let turn = 0; turn < 3; turn++) {
    // The first worker always comes first, and the job is not for it.
    for (let nth = 0; nth < 20; nth++) {
      await fetch(1);
      await stage.advance("50ms");
    }
    await fetch(2);
    await stage.post("/jobs", { type: "ver.job", args: [], version: 2 });
  }
  expect(fetched).toEqual([2, 2, 2]);
});

it("a job that no worker runs here goes back, for workers of other servers", async () => {
  await using stage = await openServer();
  const { body } = await stage.post("/jobs", { type: "ver.job", args: [], version: 2 });
  await stage.post("/workers/fetch", { queues: ["default"], versions: { "ver.job": [1] } });
  expect((await stage.get(`/jobs/${body.job.id}`)).body.job.state).toBe("active");
  await stage.advance("5s");
  expect((await stage.get(`/jobs/${body.job.id}`)).body.job.state).toBe("available");
});

it("our own remote worker says its versions, and a client's jobs carry theirs", async () => {
  const { engine, work, advance } = await openClientStage();
  const ran: unknown[] = [];
  work([processor(defineJob({ type: "ver.job", versions: [2] }), ({ id }) => void ran.push(id))]);
  const [old, newer] = [await engine.enqueue(made(1), undefined), await engine.enqueue(made(2), undefined)];
  await advance("5s");
  expect(ran).toEqual([newer.id]);
  expect(ran).not.toContain(old.id);
});

it("definitions refuse what is no version", () => {
  expect(() => defineJob({ type: "a", version: 0 })).toThrow(/version: 0/);
  expect(() => defineJob({ type: "a", versions: [] })).toThrow(/versions: /);
  expect(() => defineJob({ type: "a", versions: ["v2"] })).toThrow(/versions\[0\]/);
});
