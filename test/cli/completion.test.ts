import { execFile, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { fileFolder } from "../support/folders.ts";
import { curfew } from "./stage.ts";

const run = promisify(execFile);
const folder = fileFolder();
beforeAll(async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const { code, stdout, stderr } = await curfew(["completion", shell]);
    if (code !== 0) throw new Error(stderr);
    writeFileSync(join(folder, shell), stdout);
  }
});

/** What each shell offers for a line; the last word is the one that is being written. */
const OFFERS: Readonly<Record<string, (words: readonly string[]) => Promise<string>>> = {
  async bash(words) {
    const script = `source ${folder}/bash
      COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _curfew; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return (await run("bash", ["-c", script, "bash", ...words], { cwd: folder })).stdout;
  },
  // The functions of the completion system print what they are given.
  async zsh(words) {
    const script = `source ${folder}/zsh
      _describe() { local name; for name in "\${(@P)2}"; print -r -- "\${name%%:*}" | grep -- "^$PREFIX" }; compadd() { shift; print -l -- "$@" | grep "^$PREFIX" }
      _files() { print -l -- *(N) }
      words=("$@"); CURRENT=$#; PREFIX=\${words[-1]}; _curfew; command -v grep >/dev/null || print "the search path is gone"; true`;
    return (await run("zsh", ["-f", "-c", script, "zsh", ...words], { cwd: folder })).stdout;
  },
  async fish(words) {
    const script = `source ${folder}/fish; complete -C "${words.join(" ")}"`;
    return (await run("fish", ["--no-config", "-c", script], { cwd: folder })).stdout.replaceAll(/\t.*/g, "");
  },
};

const installed = Object.keys(OFFERS).filter((shell) => spawnSync(shell, ["-c", "true"]).status === 0);

const offered = async (shell: string, ...words: string[]) =>
  (await (OFFERS[shell] as (typeof OFFERS)[string])(["curfew", ...words]))
    .split("\n")
    .filter((line) => line !== "")
    .sort();

describe("the completion", () => {
  it("is tried in bash at least", () => {
    expect(installed).toContain("bash");
  });
});

describe.each(installed)("the completion in %s", (shell) => {
  it("offers commands, and those below a noun", async () => {
    expect(await offered(shell, "")).toEqual(expect.arrayContaining(["ls", "queues", "import", "keys"]));
    expect(await offered(shell, "qu")).toEqual(["queues"]);
    expect(await offered(shell, "queues", "p")).toEqual(["pause", "purge"]);
    expect(await offered(shell, "keys", "ro")).toEqual(["rotate"]);
  });

  it("offers the options of the command and no others", async () => {
    expect(await offered(shell, "ls", "--st")).toEqual(["--state", "--store"]);
    expect(await offered(shell, "queues", "ls", "--st")).toEqual(["--store"]);
    expect(await offered(shell, "import", "--dry")).toEqual(["--dry-run"]);
  });

  it("offers the values of an option, and files where a file is meant", async () => {
    expect(await offered(shell, "ls", "--state", "di")).toEqual(["discarded"]);
    expect(await offered(shell, "ls", "--queue", "")).toEqual([]);
    expect(await offered(shell, "completion", "")).toEqual(expect.arrayContaining(["bash", "zsh", "fish"]));
    expect(await offered(shell, "import", "")).toEqual(expect.arrayContaining(["bash", "zsh", "fish"]));
  });
});

describe("curfew completion", () => {
  it("refuses a shell that it does not know", async () => {
    const ended = await curfew(["completion", "tcsh"]);
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(ended.stderr).toContain("Allowed choices are bash, zsh, fish");
  });
});
