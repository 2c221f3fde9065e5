import { CurfewError } from "../../core/errors.ts";
import { ifMissing } from "../../core/load-package.ts";
import type { JsonSchema } from "../../core/registry/json-schema.ts";
import type { Json } from "../../core/schema.ts";

/** The first thing that does not fit: its place (`[0].email`), and what was expected there. */
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
  // RE2 takes time in proportion to the text, whatever the pattern is.
  const engine = Object.assign(
    (pattern: string) => {
      const compiled = RE2JS.compile(pattern);
      // Ajv keeps one compiled pattern per text.
      return { test: (text: string) => compiled.matcher(text).find(), toString: () => pattern };
    },
    { code: "require('re2js')" },
  );
  const ajv = new Ajv2020({
    strict: false,
    // In 2020-12 a format is a note.
    validateFormats: false,
    ownProperties: true,
    addUsedSchema: false,
    logger: false,
    code: { regExp: engine as never },
  }) as unknown as Ajv;
  return (schema) => validatorOf(ajv, schema);
}

function validatorOf(ajv: Ajv, schema: JsonSchema): Validator {
  const { $schema: _draft, ...rest } = schema as { readonly [keyword: string]: Json };
  let check: AjvFunction;
  try {
    check = ajv.compile(rest);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new CurfewError("invalid_schema", `schema: is not a valid JSON Schema; ${why.slice(0, 500)}`, {
      field: "schema",
      cause,
    });
  } finally {
    // The compiled function is kept by its user; Ajv must not collect one per version.
    ajv.removeSchema(rest);
  }
  return (args) => (check(args) ? null : misfit(check.errors?.[0]));
}

function misfit(error: AjvError | undefined): Misfit {
  if (!error) return { at: "", message: "it does not fit" };
  const { keyword, params, message = "it does not fit" } = error;
  const extra =
    keyword === "additionalProperties" ? ` (${String(params.additionalProperty).slice(0, 100)})` : "";
  const values = keyword === "enum" ? ` (${JSON.stringify(params.allowedValues).slice(0, 200)})` : "";
  return { at: placeOf(error.instancePath), message: `${message}${extra}${values}` };
}

/** `/0/a~1b/c` as `[0].a/b.c`. */
function placeOf(pointer: string): string {
  const steps = pointer.split("/").slice(1);
  return steps
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"))
    .map((step) => (/^\d+$/.test(step) ? `[${step}]` : `.${step}`))
    .join("");
}
