import { CurfewError, show } from "../../core/errors.ts";
import { ifMissing } from "../../core/load-package.ts";
import type { JsonSchema } from "../../core/registry/json-schema.ts";
import { patternWeight } from "../../core/registry/pattern-weight.ts";
import { CHECK_LIMITS, SchemaCost } from "../../core/registry/schema-cost.ts";
import type { Json } from "../../core/schema.ts";

/** The first thing that does not fit: its path (`[0].email`), and what was expected there. */
export interface Misfit {
  readonly at: string;
  readonly message: string;
}

/** Checks the arguments of a job; null if they fit. */
export type Validator = (args: readonly Json[]) => Misfit | null;

interface AjvError {
  readonly instancePath: string;
  readonly keyword: string;
  readonly message?: string;
  readonly params: Readonly<Record<string, unknown>>;
}
interface AjvFunction {
  (value: unknown): boolean;
  readonly errors?: readonly AjvError[] | null;
}
interface Ajv {
  compile(schema: object): AjvFunction;
  removeSchema(schema: object): unknown;
}

let loaded: Promise<(schema: JsonSchema) => Validator> | undefined;

/** Makes validators. Ajv and RE2 are loaded when the first schema is used. */
export function validators(): Promise<(schema: JsonSchema) => Validator> {
  loaded ??= load();
  // A package that was missing may be there next time.
  loaded.catch(() => {
    loaded = undefined;
  });
  return loaded;
}

async function load(): Promise<(schema: JsonSchema) => Validator> {
  const fail = ifMissing(["ajv", "re2js"], "a registered schema");
  const [{ Ajv2020 }, { RE2JS }] = await Promise.all([
    import("ajv/dist/2020.js").catch(fail),
    import("re2js").catch(fail),
  ]);
  const meter = new MatchMeter();
  // RE2 takes time in proportion to the text, and to the weight of the pattern.
  const engine = Object.assign(
    (pattern: string) => {
      const compiled = RE2JS.compile(pattern);
      const weight = patternWeight(pattern);
      const test = (text: string) => {
        meter.spend(text.length * weight);
        return compiled.matcher(text).find();
      };
      // Ajv keeps one compiled pattern per text.
      return { test, toString: () => pattern };
    },
    { code: "require('re2js')" },
  );
  const open = () =>
    new Ajv2020({
      strict: false,
      // In 2020-12 a format is a note.
      validateFormats: false,
      ownProperties: true,
      addUsedSchema: false,
      logger: false,
      code: { regExp: engine as never },
    }) as unknown as Ajv;
  let ajv = open();
  let compiled = 0;
  return (schema) => {
    // Ajv keeps the patterns and values of everything that it compiled, so one of them does not serve for ever.
    if (compiled > COMPILED_BY_ONE) [ajv, compiled] = [open(), 0];
    compiled += JSON.stringify(schema).length;
    return validatorOf(ajv, schema, meter);
  };
}

/** Characters of schemas. */
const COMPILED_BY_ONE = 500_000;

/** Counts what the patterns of one check cost. A check does not wait, so one meter is enough for all. */
class MatchMeter {
  #spent = 0;

  reset(): void {
    this.#spent = 0;
  }

  spend(cost: number): void {
    this.#spent += cost;
    if (this.#spent > CHECK_LIMITS.matching) throw TOO_COSTLY;
  }
}

const TOO_COSTLY = new Error("too costly");
const COSTLY: Misfit = {
  at: "",
  message: "checking it takes too long: send fewer values and shorter texts, or register a simpler schema",
};

/** Ajv names the first wrong keyword as `data/properties/a/type must be …`; of a pattern it names nothing. */
function invalidSchema(schema: object, cause: unknown): CurfewError {
  const why = (cause instanceof Error ? cause.message : String(cause)).replace(/^schema is invalid: /, "");
  const [, path, rest] = /^data(\S*) (.*?)(?:, data.*)?$/s.exec(why) ?? [];
  if (path === undefined || rest === undefined) {
    const says = `schema: it is not a valid JSON Schema 2020-12; ${why.slice(0, 500)}: correct it`;
    return new CurfewError("invalid_schema", says, { field: "schema", cause });
  }
  const names = path.split("/").slice(1);
  const field = ["schema", ...names].join(".");
  const value = names.reduce<unknown>(
    (inner, name) => (inner as Record<string, unknown> | undefined)?.[name],
    schema,
  );
  const says = `${field}: ${show(value)} is not valid in JSON Schema 2020-12; it ${rest.slice(0, 500)}`;
  return new CurfewError("invalid_schema", says, { field, cause });
}

function validatorOf(ajv: Ajv, schema: JsonSchema, meter: MatchMeter): Validator {
  const { $schema: _draft, ...rest } = schema as { readonly [keyword: string]: Json };
  let check: AjvFunction;
  try {
    check = ajv.compile(rest);
  } catch (cause) {
    throw invalidSchema(rest, cause);
  } finally {
    // The compiled function is kept by its user; Ajv must not collect one per version.
    ajv.removeSchema(rest);
  }
  const cost = new SchemaCost(schema);
  return (args) => {
    if (!cost.allows(args)) return COSTLY;
    meter.reset();
    try {
      return check(args) ? null : misfit(check.errors?.[0]);
    } catch (error) {
      if (error === TOO_COSTLY) return COSTLY;
      throw error;
    }
  };
}

function misfit(error: AjvError | undefined): Misfit {
  if (!error) return { at: "", message: "it does not fit" };
  const { keyword, params, message = "it does not fit" } = error;
  const extra =
    keyword === "additionalProperties" ? ` (${String(params.additionalProperty).slice(0, 100)})` : "";
  const values = keyword === "enum" ? ` (${JSON.stringify(params.allowedValues).slice(0, 200)})` : "";
  return { at: pathOf(error.instancePath), message: `${message}${extra}${values}` };
}

/** `/0/a~1b/c` as `[0].a/b.c`. */
function pathOf(pointer: string): string {
  const steps = pointer.split("/").slice(1);
  return steps
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"))
    .map((step) => (/^\d+$/.test(step) ? `[${step}]` : `.${step}`))
    .join("");
}
