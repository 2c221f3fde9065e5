import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ProcessFiles } from "../../src/stores/sqlite/process-files.ts";

/** Takes and frees 60 locks on files of its own, for ever. */
const CHURN = `
  const { DatabaseSync } = require("node:sqlite");
  const all = Array.from({ length: 60 }, (_, i) => new DatabaseSync(process.argv[1] + "-" + i + ".db"));
  for (const one of all) one.exec("pragma journal_mode = delete; create table t (x)");
  process.stdout.write("ready");
  setInterval(() => {
    for (const one of all) one.exec("begin; select * from t");
    for (const one of all) one.exec("commit");
  }, 0);
`;

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "curfew-churn-"));
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

it.runIf(process.platform === "linux")(
  "does not take its own lock for lost while other processes lock and unlock",
  async () => {
    const path = join(folder, "own.db");
    using database = new DatabaseSync(path);
    database.exec("pragma journal_mode = wal; create table t (x)");
    database.prepare("select * from t").all();
    const files = new ProcessFiles(path);
    const others = [1, 2, 3].map((each) =>
      spawn(process.execPath, ["-e", CHURN, join(folder, `other${each}`)]),
    );
    try {
      await Promise.all(others.map(({ stdout }) => once(stdout, "data")));
      const seen = new Set(Array.from({ length: 3_000 }, () => files.look()));
      expect([...seen]).toEqual([undefined]);
    } finally {
      for (const other of others) other.kill("SIGKILL");
      await Promise.all(others.map((other) => once(other, "close")));
    }
  },
);
