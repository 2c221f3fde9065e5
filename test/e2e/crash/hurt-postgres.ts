import pg from "pg";
import { type OwnPostgres, startOwnPostgres } from "../../postgres.ts";

/** A server of its own with a function that hurts it: it ends all connections, and every third time it is killed. */
export async function startHurtPostgres(): Promise<{ server: OwnPostgres; hurtStore: () => Promise<void> }> {
  const server = await startOwnPostgres();
  let hurts = 0;
  const hurtStore = async () => {
    hurts += 1;
    if (hurts % 3 === 0) await server.crash();
    else await terminateBackends(server.url);
  };
  return { server, hurtStore };
}

async function terminateBackends(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend'",
  );
  await client.end();
}
