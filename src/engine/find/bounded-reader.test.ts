import { describe, expect, it } from "vitest";
import { rowsWithin } from "../../core/job/documents/row-size.ts";
import type { JobRow } from "../../core/job/job.ts";
import type { LoadOptions } from "../../ports/store.ts";
import { BoundedReader, loadInParts, loadWithin } from "./bounded-reader.ts";

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
  /** Rows of which those with an odd id are unknown. Counts the rows of each call. */
  function openJobs(sizeOf: (id: number) => number) {
    const asked: number[] = [];
    const load = async (ids: readonly string[], { size = Number.POSITIVE_INFINITY }: LoadOptions = {}) => {
      const rows = ids.map((id) => (Number(id) % 2 === 0 ? rowOf(Number(id), sizeOf(Number(id))) : null));
      const part = rowsWithin(rows, size);
      asked.push(part.length);
      return part;
    };
    return { asked, store: { jobs: { load } as never } };
  }
  const idsTo = (count: number) => Array.from({ length: count }, (_, index) => `${index}`);

  it("cost one call for 1,000 small ones, in the order of the ids, with null for unknown ones", async () => {
    const { asked, store } = openJobs(() => 1_000);
    const ids = idsTo(2_500);
    const seen: (string | null)[] = [];
    for await (const row of loadInParts(store, ids)) seen.push(row?.id ?? null);
    expect(seen).toEqual(ids.map((id) => (Number(id) % 2 === 0 ? id : null)));
    expect(asked).toEqual([1_000, 1_000, 500]);
  });

  it("come a few at a time where they are large", async () => {
    const { asked, store } = openJobs((id) => (id < 100 ? 1 : MB));
    let count = 0;
    for await (const row of loadInParts(store, idsTo(200))) count += row ? 1 : 0;
    expect(count).toBe(100);
    expect(Math.max(...asked.slice(1))).toBeLessThanOrEqual(10);
    expect(asked[0]).toBeLessThanOrEqual(110);
  });

  it("are whole within a size by one call, and the others brief by one more", async () => {
    const small = openJobs(() => 100);
    const all = await loadWithin(small.store, idsTo(1_000), 4 * MB);
    expect([all.rows.size, small.asked]).toEqual([500, [1_000]]);
    const large = openJobs(() => MB);
    const some = await loadWithin(large.store, idsTo(12), 2 * MB);
    expect(idsTo(12).filter((id) => some.isBrief(id))).toEqual(["4", "6", "8", "10"]);
    expect(large.asked[0]).toBe(3);
  });
});
