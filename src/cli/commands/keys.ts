import { type Command, Option } from "commander";
import { ROLES } from "../../server/roles.ts";
import { withPage } from "../declare.ts";
import type { NewKeyOptions } from "../new-key.ts";
import { registerKeyFile } from "./key-file.ts";

export function register(keys: Command): void {
  keys.description("Keys that callers of a server must bring.");
  const command = keys
    .command("new")
    .description("Make a key: it is shown once, and only its hash is kept.")
    .addOption(
      new Option("--role <role>", "what it may do").choices(Object.keys(ROLES)).makeOptionMandatory(),
    )
    .requiredOption("--name <name>", "whose key it is; several keys may share a name")
    .option("--not-after <instant>", "from when on it is refused, such as 2030-01-31T12:00:00Z")
    .option("--file <file>", "add it to this file of keys, which is made if need be");
  withPage(command, {
    examples: [["keys new --role worker --name mailer --file keys.json", "a key for a worker"]],
    json: '{"key","name","role","hash","notAfter"?}',
  }).action(async (options: NewKeyOptions) => {
    const { newKey } = await import("../new-key.ts");
    await newKey(options);
  });
  registerKeyFile(keys);
}
