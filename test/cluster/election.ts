import type { RedisNode } from "../redis.ts";

/** What the servers wrote about a failover, as `Date.now()`; null if they wrote nothing. */
export interface Election {
  /** The others agreed that the master is dead. */
  readonly failedAt: number | null;
  /** A replica became the master. */
  readonly wonAt: number | null;
  /** The new master has a replica that it can wait for. */
  readonly syncedAt: number | null;
}

const LINE = /^\d+:\w (\d+ \w+ \d+ \d+:\d+:\d+\.\d+) \S (.*)$/;
const FAILED = /Marking node .* as failing|FAIL message received/;
const WON = /Failover election won/;
const SYNCED = /Partial resynchronization request from .* accepted|Synchronization with replica .* succeeded/;

/** Reads the logs of the nodes from a moment on. Servers write local time. */
export async function readElection(nodes: readonly RedisNode[], from: number): Promise<Election> {
  const logs = await Promise.all(nodes.map((node) => node.log()));
  const all = logs.map((text) => linesOf(text, from));
  const won = all.map((lines) => firstOf(lines, WON));
  const wonAt = least(won);
  const winner = all[won.indexOf(wonAt)];
  return {
    failedAt: least(all.map((lines) => firstOf(lines, FAILED))),
    wonAt,
    syncedAt:
      wonAt === null || !winner
        ? null
        : firstOf(
            winner.filter(({ at }) => at >= wonAt),
            SYNCED,
          ),
  };
}

interface Line {
  readonly at: number;
  readonly text: string;
}

function linesOf(log: string, from: number): Line[] {
  return log.split("\n").flatMap((line) => {
    const [, time, text] = LINE.exec(line) ?? [];
    const at = time === undefined ? Number.NaN : Date.parse(time);
    return at >= from && text !== undefined ? [{ at, text }] : [];
  });
}

function firstOf(lines: readonly Line[], pattern: RegExp): number | null {
  return lines.find(({ text }) => pattern.test(text))?.at ?? null;
}

function least(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : Math.min(...known);
}
