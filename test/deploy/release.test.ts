import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { nextVersion, releaseChangelog, withVersion } from "../../scripts/release.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");

describe("a release", () => {
  it.each([
    ["patch", "1.2.4"],
    ["minor", "1.3.0"],
    ["major", "2.0.0"],
    ["1.10.0", "1.10.0"],
  ])("%s of 1.2.3 is %s", (step, expected) => {
    expect(nextVersion("1.2.3", step)).toBe(expected);
  });

  it.each([
    ["1.2.3", "is not higher than 1.2.3"],
    ["1.1.9", "is not higher than 1.2.3"],
    ["huge", "is not a version"],
  ])("%s is refused", (step, why) => {
    expect(() => nextVersion("1.2.3", step)).toThrow(why);
  });

  it("moves what is unreleased under the heading of the version, and takes it as notes", () => {
    const text =
      "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n\n## [1.0.0] - 2029-01-01\n\n- Old.\n";
    expect(releaseChangelog(text, "1.1.0", "2030-01-01")).toEqual({
      text: "# Changelog\n\n## [Unreleased]\n\n## [1.1.0] - 2030-01-01\n\n### Added\n\n- A thing.\n\n## [1.0.0] - 2029-01-01\n\n- Old.\n",
      notes: "### Added\n\n- A thing.",
    });
  });

  it("is refused without notes, without the heading, and for a version that has one", () => {
    const empty = "## [Unreleased]\n\n## [1.0.0] - 2029-01-01\n";
    expect(() => releaseChangelog(empty, "1.1.0", "2030-01-01")).toThrow("nothing stands under");
    expect(() => releaseChangelog("# Changelog\n", "1.1.0", "2030-01-01")).toThrow("no heading");
    const twice = "## [Unreleased]\n\n- A.\n\n## [1.0.0] - 2029-01-01\n";
    expect(() => releaseChangelog(twice, "1.0.0", "2030-01-01")).toThrow("1.0.0 has a heading already");
  });

  it("changes only the version of the manifest and the lock file", () => {
    for (const name of ["package.json", "package-lock.json"]) {
      const text = read(name);
      const changed = withVersion(text, "9.8.7");
      expect(changed).not.toBe(text);
      expect(JSON.parse(changed).version).toBe("9.8.7");
      expect(withVersion(changed, JSON.parse(text).version)).toBe(
        withVersion(text, JSON.parse(text).version),
      );
    }
  });

  it("says in a dry run what it would do, and changes nothing", async () => {
    const files = ["package.json", "CHANGELOG.md"];
    const before = files.map(read);
    const { stdout } = await run(process.execPath, [join(root, "scripts/release.ts"), "minor", "--dry-run"], {
      cwd: root,
      env: { ...process.env, PATH: `${join(process.execPath, "..")}:${process.env.PATH}` },
    });
    const { version } = JSON.parse(before[0] as string) as { version: string };
    expect(stdout).toContain(`would release ${version} -> ${nextVersion(version, "minor")}`);
    expect(stdout).toMatch(/would pack \d+ files/);
    expect(files.map(read)).toEqual(before);
  });
});

interface Workflow {
  readonly jobs: Readonly<Record<string, { readonly steps: readonly { readonly run?: string }[] }>>;
  readonly permissions: Readonly<Record<string, string>>;
}

describe("the workflows", () => {
  const commands = ({ jobs }: Workflow) =>
    Object.values(jobs).flatMap(({ steps }) =>
      steps.flatMap(({ run: text }) => (text === undefined ? [] : [text])),
    );

  it("publish with provenance after the tests, from a tag that is the version", () => {
    const workflow = parse(read(".github/workflows/release.yml")) as Workflow;
    const steps = commands(workflow);
    expect(workflow.permissions["id-token"]).toBe("write");
    const publish = steps.findIndex((text) => text.includes("npm publish --provenance"));
    expect(steps.indexOf("npm test")).toBeGreaterThanOrEqual(0);
    expect(steps.indexOf("npm test")).toBeLessThan(publish);
    expect(steps.findIndex((text) => text.includes("GITHUB_REF_NAME"))).toBeLessThan(
      steps.indexOf("npm test"),
    );
  });

  it("rehearse the release on every push", () => {
    const steps = commands(parse(read(".github/workflows/ci.yml")) as Workflow);
    expect(steps).toContain("node scripts/release.ts minor --dry-run");
    expect(steps).toContain("npm test");
  });
});
