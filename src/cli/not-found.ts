import { nearestName } from "../core/nearest-name.ts";
import { CommandFailed } from "./exit.ts";
import { type Fields, Refusal, type Target } from "./target.ts";

const LOOKED_AT = 200;

/** Does something to one job by its id. Where there is no such job, says which of the newest was probably meant. */
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

/** By the first or last characters, which is what people copy, or by a few typing mistakes. */
async function nearestJob(target: Target, id: string): Promise<string | undefined> {
  const { items } = await target.get("/ojs/v1/admin/jobs", { per_page: LOOKED_AT });
  const ids = (items as readonly Fields[]).map((job) => String(job.id));
  const cut = ids.filter((known) => id.length >= 4 && (known.startsWith(id) || known.endsWith(id)));
  return cut.length === 1 ? cut[0] : nearestName(id, ids);
}

/** The same for things that have names: queues, crons. */
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

/** What an older server does not serve is said as such: "not found" would be taken for an empty store. */
export async function offered<Value>(
  target: Target,
  what: string,
  ask: () => Promise<Value>,
): Promise<Value> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof Refusal) || !/^Nothing is served at /.test(error.message)) throw error;
    throw new CommandFailed("failed", `${target.name} does not offer ${what} to operators; upgrade it`, {
      cause: error,
    });
  }
}
