import { isHolder } from "../../core/job/decide/holder.ts";
import { briefRow } from "../../core/job/documents/brief-row.ts";
import { sizeOfRow } from "../../core/job/documents/row-size.ts";
import type { JobRow } from "../../core/job/job.ts";
import { BATCH_LIMIT, type Store } from "../../ports/store.ts";
import { loadBrief, loadInParts } from "../find/bounded-reader.ts";
import type { Report, Reported } from "./report-types.ts";
import type { RowCache } from "./row-cache.ts";

/** Characters of loaded rows that wait for their decisions. */
const PART_SIZE = 4_000_000;

interface LoadedReport {
  readonly index: number;
  readonly report: Report;
  readonly row: JobRow | null;
}

/**
 * Decides on many reports. Rows that are not cached are loaded by one call if they are small. If not, those that are left
 * are loaded briefly, and whole only for senders that hold them, in parts: many reports on large jobs must not fill the
 * memory. The decisions of a part share commits. The answers have brief rows.
 */
export async function reportInParts(
  store: Pick<Store, "jobs">,
  cache: RowCache,
  reports: readonly Report[],
  decide: (report: Report, row: JobRow | null) => Promise<Reported>,
): Promise<PromiseSettledResult<Reported>[]> {
  const answers = new Array<PromiseSettledResult<Reported>>(reports.length);
  const decideAll = async (part: readonly LoadedReport[]) => {
    const settled = await Promise.allSettled(part.map(({ report, row }) => decide(report, row)));
    for (const [at, { index }] of part.entries())
      answers[index] = withoutDocuments(settled[at] as PromiseSettledResult<Reported>);
  };
  const all = reports.map((report, index) => ({ report, index, row: cache.get(report.id) ?? null }));
  const unknown = all.filter(({ row }) => row === null);
  await decideAll(all.filter(({ row }) => row !== null));
  if (unknown.length === 0) return answers;
  const asked = unknown.map(({ report }) => report.id);
  const first = await store.jobs.load(asked.slice(0, BATCH_LIMIT), { size: PART_SIZE });
  await decideAll(first.map((row, at) => ({ ...(unknown[at] as LoadedReport), row })));
  const rest = unknown.slice(first.length);
  const brief = await loadBrief(store, asked.slice(first.length));
  const looked = rest.map((one, at) => ({ ...one, row: brief[at] ?? null }));
  const isHeld = ({ report, row }: LoadedReport) => row !== null && isHolder(row, report.sender);
  await decideAll(looked.filter((one) => !isHeld(one)));
  const missing = looked.filter(isHeld);
  let [part, size, at]: [LoadedReport[], number, number] = [[], 0, 0];
  const ids = missing.map(({ report }) => report.id);
  for await (const loaded of loadInParts(store, ids)) {
    const { report, index } = missing[at++] as LoadedReport;
    // A report before this one may have been about the same job.
    part.push({ report, index, row: cache.get(report.id) ?? loaded });
    size += loaded ? sizeOfRow(loaded) : 0;
    if (size < PART_SIZE) continue;
    await decideAll(part);
    [part, size] = [[], 0];
  }
  await decideAll(part);
  return answers;
}

function withoutDocuments(answer: PromiseSettledResult<Reported>): PromiseSettledResult<Reported> {
  if (answer.status === "rejected") return answer;
  const { value } = answer;
  return { status: "fulfilled", value: value.row ? { ...value, row: briefRow(value.row) } : value };
}
