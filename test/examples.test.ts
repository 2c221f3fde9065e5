import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

const run = promisify(execFile);
const examples = join(import.meta.dirname, "../examples");
const names = readdirSync(examples).filter((name) => existsSync(join(examples, name, "main.ts")));
const numbered = names.filter((name) => /^\d\d-/.test(name));
const demo = join(examples, "demo/main.ts");

/** Without the runner's own wish for colours, so that outputs can be compared. */
const { FORCE_COLOR: _, ...rest } = process.env;
const env = { ...rest, NO_COLOR: "1" };

/** Examples provoke what curfew warns of; anything worse is a fault of theirs. */
function faults(stderr: string): string {
  return stderr.replaceAll(/^curfew warning: .*\n/gm, "");
}

describe.concurrent("examples", () => {
  it.each(numbered)("%s prints what output.txt says", async (name) => {
    // A process of its own, as a user would start it.
    const { stdout, stderr } = await run(process.execPath, [join(examples, name, "main.ts")], { env });
    expect(stdout).toBe(readFileSync(join(examples, name, "output.txt"), "utf8"));
    expect(faults(stderr)).toBe("");
  });

  it("import nothing of the repository but their own files, so that a user can copy them", () => {
    const files = numbered.flatMap((name) =>
      readdirSync(join(examples, name))
        .filter((file) => file.endsWith(".ts"))
        .map((file) => join(name, file)),
    );
    const imports = files.flatMap((file) =>
      [...readFileSync(join(examples, file), "utf8").matchAll(/from "(\.[^"]*)"/g)].map(
        ([, to]) => `${file}: ${to}`,
      ),
    );
    expect(imports.length).toBeGreaterThan(3);
    expect(imports.filter((line) => line.includes(": ../"))).toEqual([]);
  });

  it("are numbered, and none is left out", () => {
    expect(names.filter((name) => name !== "demo")).toEqual(numbered);
    expect(numbered.length).toBeGreaterThanOrEqual(8);
  });
});

describe.concurrent("the demo", () => {
  it("shows every kind of end, and exits by itself", async () => {
    const { stdout, stderr } = await run(process.execPath, [demo], { env });
    expect(faults(stderr)).toBe("");
    const endings = [
      /mail\.welcome +✓ completed/,
      /file\.upload +◷ timed out +Timed out after 1s\n.*↻ retrying/,
      /report\.render +◷ timed out +Timed out after 1s, ended by force/,
      /image\.thumb +✓ completed +after \d+ ms, late/,
      /rates\.fetch +✗ discarded/,
      /search\.index +◷ stalled +Stalled: no beat for 800ms/,
      /offer\.send +◷ expired +Expired: not started within 1s/,
      /table\.migrate +\+ extended/,
      /table\.migrate +✓ completed +after \d+ ms\n/,
      /mail\.bulk +■ cancelled/,
      /worker +! blocked +for \d+ ms by password\.hash/,
      /lateness +\d+ fired: .* none early/,
    ];
    for (const ending of endings) expect(stdout).toMatch(ending);
  });

  it("prints events as JSON lines, and drains at Ctrl-C", async () => {
    const child = spawn(process.execPath, [demo, "--json"], { env });
    let stdout = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      const hasBegun = stdout.includes('"job.started"');
      stdout += text;
      // The first attempt runs: there is something to drain.
      if (!hasBegun && stdout.includes('"job.started"')) child.kill("SIGINT");
    });
    const [code, signal] = await once(child, "close");
    expect({ code, signal }).toEqual({ code: 0, signal: null });
    const events = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { name: string });
    const names = events.map(({ name }) => name);
    expect([names[0], names.at(-1)]).toEqual(["worker.started", "worker.stopped"]);
    expect(names).toContain("worker.quiet");
    const begun = names.filter((name) => name === "job.started");
    expect(begun.length).toBeGreaterThan(0);
    expect(names.filter((name) => name === "job.completed")).toHaveLength(begun.length);
  });
});
