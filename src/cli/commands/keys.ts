import { type Command, Option } from "commander";
import { ROLES } from "../../server/access/roles.ts";
import { withPage } from "../declare.ts";
import type { NewKeyOptions } from "../keys/new-key.ts";
import { registerKeyFile } from "./key-file.ts";

export function register(keys: Command): void {
  keys.description("Keys for callers of a server.");
  const command = keys
    .command("new")
    .description("Make a key. It is shown once; only its hash is stored.")
    .addOption(
      new Option("--role <role>", "what it may do").choices(Object.keys(ROLES)).makeOptionMandatory(),
    )
    .requiredOption("--name <name>", "who uses it; several keys may share a name")
    .option("--tenant <names...>", 'the tenant that its callers work within, or several; "*" for all')
    .option("--not-after <instant>", "when it expires, such as 2030-01-31T12:00:00Z")
    .option("--file <file>", "add it to this key file; a missing file is created");
  withPage(command, {
    examples: [
      ["keys new --role worker --name mailer --file keys.json", "a key for a worker"],
      ["keys new --role admin --name acme --tenant acme --file keys.json", "a key that sees one tenant"],
    ],
    json: '{"key","name","role","hash","not_after"?,"tenant"?}',
  }).action(async (options: NewKeyOptions) => {
    const { newKey } = await import("../keys/new-key.ts");
    await newKey(options);
  });
  registerKeyFile(keys);
}
