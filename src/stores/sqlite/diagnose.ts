import { statfsSync, statSync } from "node:fs";
import type { SqliteFacts, StoreDiagnosis } from "../../core/doctor/doctor-facts.ts";
import type { Connection } from "./connection.ts";
import { MIGRATIONS } from "./migrations.ts";
import type { Session } from "./session.ts";
import { APPLIED_MIGRATIONS, PRAGMAS, SYNCHRONOUS } from "./statements.ts";

/** Types of file systems, as statfs gives them: NFS, SMB, CIFS, SMB2. A share of FUSE may be local, so it is not one. */
const NETWORK = new Set([0x6969, 0x517b, 0xff534d42, 0xfe534d42]);

/** What the file says about itself. It takes the write lock for a moment and writes nothing. */
export async function diagnoseFile(connection: Connection): Promise<StoreDiagnosis> {
  const writeProblem = await connection.write(() => null).catch(problemOf);
  return connection.read((session) => ({
    writeProblem,
    schemaVersion: Math.max(0, ...session.all(APPLIED_MIGRATIONS).map(([version]) => version as number)),
    newestVersion: MIGRATIONS.at(-1)?.version ?? 0,
    sqlite: fileFacts(connection.path, session),
  }));
}

function problemOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function fileFacts(file: string, session: Session): SqliteFacts {
  const [pageSize, pages, unusedPages, journalMode, version] = session.get(PRAGMAS) as [
    number,
    number,
    number,
    string,
    string,
  ];
  const disk = statfsSync(file);
  const isPosix = process.platform !== "win32";
  return {
    file,
    version,
    journalMode,
    synchronous: session.get(SYNCHRONOUS)?.[0] as number,
    bytes: pageSize * pages,
    unusedBytes: pageSize * unusedPages,
    logBytes: statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0,
    mode: isPosix ? statSync(file).mode & 0o777 : null,
    diskFree: disk.bavail * disk.bsize,
    diskSize: disk.blocks * disk.bsize,
    isNetworkDisk: NETWORK.has(disk.type),
  };
}
