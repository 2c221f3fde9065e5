import { nearestName } from "../../core/nearest-name.ts";
import { CommandFailed } from "../exit.ts";
import { printable } from "../output/paint.ts";
import { type Fields, Refusal, type Target } from "./target.ts";

const LOOKED_AT = 200;

/** Calls `ask` with the path of a job. If there is no such job, the error suggests one of the newest jobs. */
export async function onJob<Value>(
  target: Target,
  id: string,
  ask: (path: string) => Promise<Value>,
): Promise<Value> {
  try {
    return await ask(`/ojs/v1/jobs/${encodeURIComponent(id)}`);
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 404) throw error;
    const near = await nearestJob(target, id);
    const hint = near === undefined ? "" : `; did you mean ${near}?`;
    throw new CommandFailed("failed", `there is no job ${JSON.stringify(id)}${hint}`, { cause: error });
  }
}

const SHORTEST_PREFIX = 8;
const MOST_CANDIDATES = 10;
const PREFIX = /^[0-9a-f][0-9a-f-]*$/;
const ID_LENGTH = 36;

/** The id that is meant: as written, or that of the only job whose id begins so. */
export async function meantJob(target: Target, written: string): Promise<string> {
  const id = written.toLowerCase();
  if (id.length < SHORTEST_PREFIX || id.length >= ID_LENGTH || !PREFIX.test(id)) return written;
  const query = { search: id, per_page: MOST_CANDIDATES };
  const { items, matched_by, pagination } = await target.get("/ojs/v1/admin/jobs", query);
  const [first, ...others] = items as readonly Fields[];
  if (matched_by !== "id" || first === undefined) return written;
  const hasMore = (pagination as Fields).has_more === true;
  if (others.length === 0 && !hasMore) return String(first.id);
  const candidates = [first, ...others].map((job) => `\n  ${job.id}  ${printable(String(job.type))}`);
  throw new CommandFailed(
    "failed",
    `several jobs have ids that begin with ${id}; name one of them:${candidates.join("")}${hasMore ? "\n  …" : ""}`,
  );
}

/** As onJob, and the beginning of an id is enough. For questions only: an action needs the whole id. */
export async function onMeantJob<Value>(
  target: Target,
  written: string,
  ask: (path: string) => Promise<Value>,
): Promise<Value> {
  return onJob(target, await meantJob(target, written), ask);
}

/** Matches the first or last characters of an id, which is what people copy, or allows a few typing mistakes. */
async function nearestJob(target: Target, id: string): Promise<string | undefined> {
  const { items } = await target.get("/ojs/v1/admin/jobs", { per_page: LOOKED_AT });
  const ids = (items as readonly Fields[]).map((job) => String(job.id));
  const cut = ids.filter((known) => id.length >= 4 && (known.startsWith(id) || known.endsWith(id)));
  return cut.length === 1 ? cut[0] : nearestName(id, ids);
}

/** The same for queues, crons and others that have names. */
export async function orNearest<Value>(
  what: string,
  name: string,
  names: () => Promise<readonly string[]>,
  ask: () => Promise<Value>,
): Promise<Value> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 404) throw error;
    const near = nearestName(name, await names());
    const hint = near === undefined ? "" : `; did you mean ${JSON.stringify(near)}?`;
    throw new CommandFailed("failed", `there is no ${what} ${JSON.stringify(name)}${hint}`, { cause: error });
  }
}

/** Says that the server is too old for this command. Its own "not found" would look like an empty store. */
export async function offered<Value>(
  target: Target,
  what: string,
  ask: () => Promise<Value>,
): Promise<Value> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof Refusal) || !/^Nothing is served at /.test(error.message)) throw error;
    throw new CommandFailed(
      "failed",
      `${target.name} does not offer ${what} to operators; upgrade the server`,
      {
        cause: error,
      },
    );
  }
}
