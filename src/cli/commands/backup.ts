import { type Command, Option } from "commander";
import type { BackupOptions, RestoreOptions } from "../backup.ts";
import { withPage } from "../declare.ts";

const store = () =>
  new Option("--store <address>", "sqlite:<file>").makeOptionMandatory().env("CURFEW_STORE");

export function registerBackup(command: Command): void {
  command
    .description("Copy a SQLite store to a new file, as it is at one moment, while workers go on.")
    .argument("<file>", "where to put the copy; it must not exist")
    .addOption(store());
  withPage(command, {
    examples: [
      ["backup jobs-backup.db --store sqlite:jobs.db", "workers need not stop"],
      ['backup "jobs-$(date +%F).db" --store sqlite:jobs.db', "one a day"],
    ],
    json: '{"store","file","bytes"}',
    more: "The copy holds everything: jobs, sagas, crons, events and statistics. For PostgreSQL use pg_dump.",
  }).action(async (file: string, options: BackupOptions) =>
    (await import("../backup.ts")).backup(file, options),
  );
}

export function registerRestore(command: Command): void {
  command
    .description(
      "Put a backup in the place of a SQLite store that no process has open. The old file is kept.",
    )
    .argument("<file>", "what curfew backup wrote")
    .addOption(store())
    .option("-y, --yes", "do not ask");
  withPage(command, {
    examples: [
      ["restore jobs-backup.db --store sqlite:jobs.db", "the old file is kept as jobs.db.before-restore"],
    ],
    json: '{"store","file","kept"}; "kept" is null if there was no store',
    more: "Stop workers and servers first. Jobs that ended after the backup run again, and jobs that came after it are gone.",
  }).action(async (file: string, options: RestoreOptions) =>
    (await import("../backup.ts")).restore(file, options),
  );
}
