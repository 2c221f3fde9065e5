/**
 * `npm run test:starved -- test/e2e/crash.test.ts`: runs test files while processes of the run are stopped at random
 * moments, for up to three seconds each, as on a machine that is too busy. A test that depends on how fast the machine
 * is fails here within a few runs, and not once in a hundred.
 *
 * `--times 5` repeats the run, `--pause 3000` is the longest stop in milliseconds, `--every 1500` the mean time between two
 * stops, `--only REGEX` stops only processes whose command line matches. All other arguments go to Vitest.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const root = join(import.meta.dirname, "..");
const rest = process.argv.slice(2);

function take(name: string, fallback: string): string {
  const at = rest.indexOf(`--${name}`);
  return at < 0 ? fallback : (rest.splice(at, 2)[1] ?? fallback);
}

const times = Number(take("times", "1"));
const pause = Number(take("pause", "3000"));
const every = Number(take("every", "1500"));
const only = new RegExp(take("only", ""));
const seed = Number(take("seed", String(Math.floor(Math.random() * 2 ** 31))));

/** Mulberry32. The seed repeats the moments, but not what the processes do meanwhile. */
let state = seed;
function random(): number {
  state = (state + 0x6d2b79f5) | 0;
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
}

/** The processes under one, without itself, whose command line matches. */
function descendants(parent: number): number[] {
  const parents = new Map<number, number>();
  for (const pid of readdirSync("/proc").map(Number)) {
    const stat = read(`/proc/${pid}/stat`);
    if (stat) parents.set(pid, Number(stat.slice(stat.lastIndexOf(")") + 4).split(" ")[0]));
  }
  const isUnder = (pid: number): boolean => {
    const above = parents.get(pid);
    return above === parent || (above !== undefined && above > 1 && isUnder(above));
  };
  return [...parents.keys()].filter((pid) => isUnder(pid) && only.test(read(`/proc/${pid}/cmdline`)));
}

function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

function signal(pid: number, name: "SIGSTOP" | "SIGCONT"): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended meanwhile.
  }
}

/** Stops one process after the other until the run ends; gives how often. */
async function starve(parent: number, isOver: () => boolean): Promise<number> {
  let stops = 0;
  while (!isOver()) {
    await sleep(random() * 2 * every);
    const pids = descendants(parent);
    const pid = pids[Math.floor(random() * pids.length)];
    if (pid === undefined) continue;
    signal(pid, "SIGSTOP");
    await sleep(random() * pause);
    signal(pid, "SIGCONT");
    stops += 1;
  }
  return stops;
}

let failures = 0;
for (let run = 1; run <= times; run++) {
  const child = spawn(join(root, "node_modules/.bin/vitest"), ["run", ...rest], {
    cwd: root,
    stdio: "inherit",
  });
  let isOver = false;
  const ended = once(child, "exit").finally(() => {
    isOver = true;
  });
  const stops = await starve(child.pid as number, () => isOver);
  const [code] = await ended;
  if (code !== 0) failures += 1;
  console.log(`run ${run} of ${times}, seed ${seed}: ${stops} stops, ${code === 0 ? "passed" : "failed"}`);
}
process.exitCode = failures > 0 ? 1 : 0;
