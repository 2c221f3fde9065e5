import { describe, expect, it } from "vitest";
import type { JobRow } from "../../core/job/job.ts";
import { BoundedReader, loadInParts } from "./bounded-reader.ts";

const MB = 1_000_000;
const rowOf = (index: number, size: number) =>
  ({ id: `${index}`, payload: "x".repeat(size), result: null, checkpoint: null }) as unknown as JobRow;

/** A store of rows of these sizes, and the number of rows of each read. */
function openRows(sizes: readonly number[]) {
  const steps: number[] = [];
  const step = async (after: string | null, count: number) => {
    const from = after === null ? 0 : Number(after);
    const jobs = sizes.slice(from, from + count).map((size, index) => rowOf(from + index, size));
    steps.push(jobs.length);
    const end = from + count;
    return { jobs, cursor: end >= sizes.length ? null : String(end) };
  };
  return { steps, step };
}

async function readAll(reader: BoundedReader, sizes: readonly number[], wanted: number) {
  const { steps, step } = openRows(sizes);
  const pages: number[] = [];
  let cursor: string | null = null;
  let most = 0;
  do {
    const page: Awaited<ReturnType<BoundedReader["read"]>> = await reader.read(step, cursor, wanted);
    pages.push(page.jobs.length);
    most = Math.max(
      most,
      page.jobs.reduce((sum, { payload }) => sum + payload.length, 0),
    );
    cursor = page.cursor;
  } while (cursor !== null);
  return { pages, steps, most };
}

describe("a reader that is bounded in bytes", () => {
  it("reads small rows in pages of the wanted length", async () => {
    const { pages, steps } = await readAll(new BoundedReader(16 * MB), Array(450).fill(100), 200);
    expect(pages).toEqual([200, 200, 50]);
    expect(Math.max(...steps)).toBe(50);
  });

  it("ends a page of large rows by their size", async () => {
    const { pages, most } = await readAll(new BoundedReader(4 * MB), Array(30).fill(MB), 200);
    expect(pages.reduce((sum, length) => sum + length, 0)).toBe(30);
    expect(Math.max(...pages)).toBe(4);
    expect(most).toBe(4 * MB);
  });

  it("holds one step of large rows more if they follow small ones", async () => {
    const sizes = [...Array(200).fill(100), ...Array(100).fill(MB)];
    const { pages, most } = await readAll(new BoundedReader(4 * MB), sizes, 200);
    expect(pages.reduce((sum, length) => sum + length, 0)).toBe(300);
    expect(most).toBeLessThanOrEqual(54 * MB);
  });

  it("ends at a step that finds nothing, with its cursor", async () => {
    const page = await new BoundedReader(MB).read(async () => ({ jobs: [], cursor: "here" }), null, 200);
    expect(page).toEqual({ jobs: [], cursor: "here" });
  });
});

describe("rows that are loaded by id", () => {
  it("come in parts, in the order of the ids, with null for unknown ones", async () => {
    const asked: number[] = [];
    const load = async (ids: readonly string[]) => {
      asked.push(ids.length);
      return ids.map((id) => (Number(id) % 2 === 0 ? rowOf(Number(id), 1) : null));
    };
    const ids = Array.from({ length: 40 }, (_, index) => `${index}`);
    const seen: (string | null)[] = [];
    for await (const row of loadInParts({ jobs: { load } as never }, ids)) seen.push(row?.id ?? null);
    expect(seen).toEqual(ids.map((id) => (Number(id) % 2 === 0 ? id : null)));
    expect(asked).toEqual([2, 8, 30]);
  });

  it("come two at a time once they are large, and brief ones in larger parts", async () => {
    const asked: number[] = [];
    const load = async (ids: readonly string[]) => {
      asked.push(ids.length);
      return ids.map((id) => rowOf(Number(id), Number(id) < 10 ? 1 : MB));
    };
    const ids = Array.from({ length: 16 }, (_, index) => `${index}`);
    const read = async (named: readonly string[], options?: { isBrief: boolean }) => {
      let count = 0;
      for await (const row of loadInParts({ jobs: { load } as never }, named, options)) count += row ? 1 : 0;
      return count;
    };
    expect(await read(ids)).toBe(16);
    expect(asked).toEqual([2, 8, 6]);
    asked.length = 0;
    const large = ids.map((id) => `${Number(id) + 100}`);
    await read(large);
    expect(asked).toEqual([2, 2, 2, 2, 2, 2, 2, 2]);
    asked.length = 0;
    const many = Array.from({ length: 400 }, () => "1");
    await read(many, { isBrief: true });
    expect(asked).toEqual([64, 256, 80]);
  });
});
