import type { Command } from "commander";
import { argsSchemaOf } from "../../core/registry/definition-schema.ts";
import { withCommands, withPage, withTarget } from "../declare.ts";
import { CommandFailed } from "../exit.ts";
import { printable } from "../output/paint.ts";
import { type Column, listText } from "../output/table.ts";
import { loadDefinitions } from "../process/load-workers.ts";
import { act } from "../run-command.ts";
import { readItems } from "../target/read-items.ts";
import type { Fields, Target } from "../target/target.ts";

const PATH = "/ojs/v1/admin/schemas";
const SCHEMA = '{"type","version","uri","schema","validation","compatibility","created_at"}';
const pathOf = (type: string, more = "") => `${PATH}/${encodeURIComponent(type)}${more}`;

export function register(schemas: Command): void {
  schemas.description("Schemas of jobs: what their arguments must look like, by type and version.");
  withCommands(schemas, {
    ls: declareList,
    show: declareShow,
    publish: declarePublish,
    check: declareCheck,
    rm: declareRemove,
  });
}

const COLUMNS: Column<Fields>[] = [
  { title: "TYPE", show: ({ type }) => printable(String(type)), shrinkTo: 12 },
  { title: "NEWEST", show: ({ version }) => String(version), align: "right" },
  { title: "VERSIONS", show: ({ versions }) => (versions as unknown[]).join(" "), shrinkTo: 8, drop: 1 },
  {
    title: "CHECKS",
    show: ({ validation }) => (validation === "always" ? "every job" : "jobs that name it"),
  },
  { title: "MUST BE", show: ({ compatibility }) => String(compatibility) },
];

function declareList(command: Command): void {
  command.description("List the types that have schemas.");
  withPage(withTarget(command), {
    examples: [["schemas ls", "types, versions and rules"]],
    json: '{"schemas":[{"type","version","versions","validation","compatibility"}]}',
  });
  act(command, async ({ target, output }) => {
    const schemas = await allTypes(target);
    output.answer({ schemas }, () => listText(COLUMNS, schemas, NO_SCHEMAS));
  });
}

const NO_SCHEMAS = "No schemas.\nRegister those of your definitions with: curfew schemas publish <file>";

async function allTypes(target: Target): Promise<readonly Fields[]> {
  return (await readItems(target, PATH, {}, { field: "schemas" })).items;
}

function declareShow(command: Command): void {
  command
    .description("Show the newest schema of a type, or one version.")
    .argument("<type>", "the type of the jobs")
    .argument("[version]", "a version; the newest if it is left out");
  withPage(withTarget(command), {
    examples: [
      ["schemas show card.charge", "the newest version"],
      ["schemas show card.charge 1", "the first one"],
    ],
    json: SCHEMA,
  });
  act(command, async ({ target, output }, _options, [type, version]) => {
    const shown = await target.get(
      pathOf(type as string, version === undefined ? "" : `/${encodeURIComponent(version)}`),
    );
    output.answer(shown, () => printable(JSON.stringify(shown.schema, null, 2)));
  });
}

interface PublishOptions {
  readonly compatibility?: string;
  readonly dryRun?: boolean;
}

function declarePublish(command: Command): void {
  command
    .description(
      "Publish the payload schemas of job definitions: a new version of each type whose schema changed.",
    )
    .argument("<module...>", "files that export definitions or processors");
  withTarget(command)
    .option(
      "--compatibility <mode>",
      "how the new version must fit the last one: none, backward, forward or full",
    )
    .option("--dry-run", "say what would be published, and what breaks");
  withPage(command, {
    examples: [
      ["schemas publish ./jobs.ts", "from then on every job of these types is checked"],
      ["schemas publish ./jobs.ts --dry-run", "for a pipeline: fails if a change breaks running jobs"],
    ],
    json: '{"published":[{"type","version","is_new","reasons"?}]}',
  });
  act<PublishOptions>(command, async ({ target, output }, { compatibility, dryRun }, _arguments) => {
    const definitions = await loadDefinitions("<module>", command.args);
    const rules = { validation: "always", ...(compatibility !== undefined && { compatibility }) };
    const published: Fields[] = [];
    for (const definition of definitions) {
      const schema = argsSchemaOf(definition) as Fields;
      const send = dryRun ? compared : sent;
      published.push(await send(target, definition.type, { schema, ...rules }));
    }
    const broken = published.filter(({ reasons }) => Array.isArray(reasons) && reasons.length > 0);
    output.answer({ published }, () => published.map(line).join("\n"));
    if (broken.length > 0)
      throw new CommandFailed(
        "failed",
        `schemas publish: ${broken.length} of ${published.length} would break running jobs`,
      );
  });
}

async function sent(target: Target, type: string, body: Fields): Promise<Fields> {
  const before = await newest(target, type);
  const { version } = await target.send("PUT", pathOf(type), body);
  return { type, version, is_new: before?.version !== version };
}

async function compared(target: Target, type: string, body: Fields): Promise<Fields> {
  if (!(await newest(target, type))) return { type, version: 1, is_new: true, reasons: [] };
  const { reasons } = await target.send("POST", pathOf(type, "/check"), body);
  return { type, version: null, is_new: true, reasons };
}

async function newest(target: Target, type: string): Promise<Fields | undefined> {
  return (await allTypes(target)).find((each) => each.type === type);
}

function line({ type, version, is_new, reasons }: Fields): string {
  const list = (reasons ?? []) as readonly string[];
  if (list.length > 0) return `${type}: breaks\n${list.map((reason) => `  ${reason}`).join("\n")}`;
  if (version === null) return `${type}: fits the newest version`;
  return `${type}: version ${version}${is_new ? "" : ", unchanged"}`;
}

function declareCheck(command: Command): void {
  command
    .description("Check whether arguments fit a schema.")
    .argument("<type>", "the type of the jobs")
    .argument("<args>", "the arguments as JSON: a list, or the payload alone");
  withTarget(command).option("--schema-version <version>", "a version; the newest if it is left out");
  withPage(command, {
    examples: [
      ["schemas check card.charge '{\"cents\": 5}'", "exit code 1 and the place if it does not fit"],
    ],
    json: '{"type","valid","compatible","reasons"}',
  });
  act<{ schemaVersion?: string }>(command, async ({ target, output }, { schemaVersion }, [type, text]) => {
    const value = parsed(text as string);
    const args = Array.isArray(value) ? value : [value];
    const body = { args, version: schemaVersion };
    const checked = await target.send("POST", pathOf(type as string, "/check"), body);
    output.answer(checked, () => (checked.valid ? "It fits." : (checked.reasons as string[]).join("\n")));
    if (!checked.valid) throw new CommandFailed("failed", "schemas check: the arguments do not fit");
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new CommandFailed(
      "usage",
      "schemas check: <args> is not valid JSON; quote it, such as '{\"cents\": 5}'",
      { cause },
    );
  }
}

function declareRemove(command: Command): void {
  command
    .description("Delete a version of a schema.")
    .argument("<type>", "the type of the jobs")
    .argument("<version>", "the version");
  withPage(withTarget(command), {
    examples: [["schemas rm card.charge 1", "jobs of that version are not checked any more"]],
    json: SCHEMA,
  });
  act(command, async ({ target, output }, _options, [type, version]) => {
    const gone = await target.send(
      "DELETE",
      pathOf(type as string, `/${encodeURIComponent(version as string)}`),
    );
    output.answer(gone, () => `Deleted version ${version} of ${printable(type as string)}.`);
  });
}
