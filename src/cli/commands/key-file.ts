import { type Command, Option } from "commander";
import { withPage } from "../declare.ts";
import type { ListKeysOptions, RemoveKeysOptions, RotateKeyOptions } from "../keys/manage-keys.ts";

const file = () =>
  new Option("--file <file>", "the key file of the server; keys.json here if there is one").env(
    "CURFEW_KEYS",
  );

/** The commands on keys that exist. Their code is loaded when one of them runs. */
export function registerKeyFile(keys: Command): void {
  const ls = keys
    .command("ls")
    .description("List the keys in a key file. The keys themselves are stored nowhere and cannot be shown.")
    .addOption(file());
  withPage(ls, {
    examples: [["keys ls --file keys.json", "who has which role, and until when"]],
    json: '{"items":[{"id","name","role","not_after","rate","tenant","is_expired"}]}; "id" is the beginning of the hash',
  }).action(async (options: ListKeysOptions) => (await import("../keys/manage-keys.ts")).listKeys(options));

  const rotate = keys
    .command("rotate")
    .description(
      "Make a new key for a name. The old one expires after the overlap, so no caller is locked out.",
    )
    .argument("<name-or-id>", "the name of the key, or its id as ls shows it")
    .addOption(file())
    .option(
      "--overlap <duration>",
      "how long the old key stays valid, such as 2h or 7d; 0s ends it now",
      "24h",
    )
    .option("--not-after <instant>", "when the new key expires, such as 2030-01-31T12:00:00Z");
  withPage(rotate, {
    examples: [
      ["keys rotate mailer --file keys.json", "a new key; the old one works for another day"],
      ["keys rotate mailer --file keys.json --overlap 0s", "the old key was stolen"],
    ],
    json: '{"key","id","name","role","not_after","replaced":[{"id","not_after"}]}',
  }).action(async (nameOrId: string, options: RotateKeyOptions) =>
    (await import("../keys/manage-keys.ts")).rotateKey(nameOrId, options),
  );

  const remove = keys
    .command("rm")
    .description("Remove keys: by name, by id, or those that have expired.")
    .argument("[names-or-ids...]", "names of keys, or their ids as ls shows them")
    .addOption(file())
    .option("--expired", "every key that has expired")
    .option("-y, --yes", "do not ask");
  withPage(remove, {
    examples: [
      ["keys rm mailer --file keys.json", "all keys of this name"],
      ["keys rm --expired --file keys.json --yes", "tidy up after a rotation"],
    ],
    json: '{"removed":[{"id","name","role"}]}',
  }).action(async (names: readonly string[], options: RemoveKeysOptions) =>
    (await import("../keys/manage-keys.ts")).removeKeys(names, options),
  );
}
