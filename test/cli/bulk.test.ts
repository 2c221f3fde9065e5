import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { defineJob, openEngine } from "../../src/index.ts";
import { RunningCommand } from "../server/command.ts";
import { fileFolder } from "../support/folders.ts";
import { answer, curfew } from "./stage.ts";
import { inTerminal } from "./terminal.ts";

const many = defineJob({ type: "many", queue: "many" });
const old = defineJob({ type: "old", queue: "old" });
const few = defineJob({ type: "few", queue: "few" });

const folder = fileFolder();
let store = "";
let server: RunningCommand;
let url = "";
beforeAll(async () => {
  store = `sqlite:${join(folder, "jobs.db")}`;
  const engine = await openEngine({ store });
  await engine.enqueueMany(old, Array.from({ length: 2 }));
  await engine.enqueueMany(many, Array.from({ length: 1_000 }));
  await engine.enqueueMany(few, Array.from({ length: 7 }));
  await engine.close();
  server = new RunningCommand(["serve", "--port", "0", "--store", store], { cwd: folder });
  url = (await server.said(/http:\/\/[^\s"]+:\d+/))[0];
});
afterAll(async () => {
  server.kill("SIGKILL");
  await server.ended;
});

describe("an action by filter", () => {
  it("with --dry-run counts, shows the first jobs and changes nothing", async () => {
    const dry = await answer(["cancel", "--queue", "few", "--dry-run", "--store", store]);
    expect(dry).toMatchObject({ action: "cancel", dry_run: true, matched: 7, succeeded: 0 });
    expect(dry.sample).toHaveLength(5);
    expect((await answer(["ls", "--queue", "few", "--state", "available", "--url", url])).items).toHaveLength(
      7,
    );
  });

  it("with --dry-run shows jobs that it applies to, however many newer ones it does not apply to", async () => {
    await answer(["cancel", "--queue", "old", "--yes", "--store", store]);
    const dry = await answer(["delete", "--all", "--dry-run", "--store", store]);
    expect(dry).toMatchObject({ matched: 2, skipped: 1_007 });
    expect((dry.sample as Record<string, unknown>[]).map(({ queue, state }) => [queue, state])).toEqual([
      ["old", "cancelled"],
      ["old", "cancelled"],
    ]);
  });

  it("of delete counts only jobs that it deletes, and says that others stay", async () => {
    const flags = ["delete", "--all", "--url", url];
    const { stdout } = await curfew([...flags, "--dry-run"]);
    expect(stdout).toMatch(/^2 jobs to delete:\n/);
    expect(stdout).toContain("1007 others wait or run and stay: cancel them first.\n");
    const { stderr } = await curfew(flags);
    expect(stderr).toContain("Delete 2 jobs on ");
    const { stdout: done } = await curfew([...flags, "--yes"]);
    expect(done).toBe("2 jobs deleted, 1007 others wait or run and stay.\n");
  });

  it("needs a filter, ids or --all", async () => {
    const { code, stderr } = await curfew(["cancel", "--url", url]);
    expect(code).toBe(2);
    expect(stderr).toContain("no jobs given; pass ids");
  });

  it("is refused without --yes where nobody can be asked", async () => {
    const { code, stdout, stderr } = await curfew(["cancel", "--queue", "few", "--url", url]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain("There is no terminal to ask on; pass --yes");
  });

  it("asks on a terminal, and changes nothing when the answer is no", async () => {
    const { type, ended, shows } = inTerminal(["cancel", "--queue", "few", "--url", url]);
    await shows(/Cancel 7 jobs on .*\? \[y\/N\] /);
    type("n\r");
    const { code, text } = await ended;
    expect(code).toBe(1);
    expect(text).toContain("7 jobs to cancel:");
    expect(text).toContain("nothing was changed");
    expect((await answer(["ls", "--queue", "few", "--state", "available", "--url", url])).items).toHaveLength(
      7,
    );
  });

  it("is done when the answer on the terminal is yes", async () => {
    const { type, ended, shows } = inTerminal(["cancel", "--queue", "few", "--limit", "3", "--url", url]);
    await shows(/Cancel 3 jobs on .*\? \[y\/N\] /);
    type("y\r");
    const { code, text } = await ended;
    expect(code).toBe(0);
    expect(text).toContain("3 jobs cancelled.");
    expect((await answer(["ls", "--queue", "few", "--state", "available", "--url", url])).items).toHaveLength(
      4,
    );
  });

  it("says what was done when Ctrl-C stops it, and exits with 130", async () => {
    let batches = 0;
    // Between the command and the server: at the third batch it presses Ctrl-C.
    const proxy = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const body = Buffer.concat(chunks).toString();
      if (body.includes('"confirm":true') && ++batches === 3) running.kill("SIGINT");
      const reply = await fetch(url + request.url, {
        method: request.method ?? "GET",
        headers: { "content-type": "application/json" },
        ...(body !== "" && { body }),
      });
      response.writeHead(reply.status, { "content-type": "application/json" }).end(await reply.text());
    }).listen(0, "127.0.0.1");
    await once(proxy, "listening");
    const through = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const running = new RunningCommand(["cancel", "--queue", "many", "--yes", "--json", "--url", through]);
    const { code, stdout, stderr } = await running.ended;
    proxy.close();
    expect(code).toBe(130);
    expect(JSON.parse(stdout)).toMatchObject({ succeeded: 600, is_complete: false });
    expect(stderr).toContain("stopped: 600 of 1000 jobs are cancelled, the others are unchanged");
    expect(batches).toBe(3);
    const left = await answer(["cancel", "--queue", "many", "--dry-run", "--url", url]);
    expect(left.matched).toBe(400);
  });
});
