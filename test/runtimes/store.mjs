/** What the programs of this folder share. Each runs on the store of `STORE` and ends with `ok`. */
import { openEngine, openSqliteStore, silentLogger } from "curfew";

export const address = process.env.STORE ?? "memory:";

/** The store of `STORE`. With `SQLITE=better-sqlite3` it is opened with a database of that package. */
export async function storeOf() {
  if (process.env.SQLITE !== "better-sqlite3") return address;
  const { default: Database } = await import("better-sqlite3");
  return openSqliteStore({ database: new Database(address.slice("sqlite:".length)) });
}

export const openStore = async () => openEngine({ store: await storeOf(), logger: silentLogger });

/** Ends the program if the two differ, and says how. */
export function check(name, seen, wanted) {
  const [a, b] = [JSON.stringify(seen), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${name}: ${a} is not ${b}`);
}

/** Waits until the condition holds. The program around it has a limit of a minute. */
export async function until(condition) {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 10));
}
