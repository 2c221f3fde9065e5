/** The paths and matchers of the conformance format, as far as this suite uses them; anything else is an error. */

type Step =
  | { readonly key: string }
  | { readonly index: number }
  | { readonly where: string; readonly is: string };

const PARTS = /\[\?\(@\.(\w+)=='([^']*)'\)\]|\[(\d+)\]|\.?([\w-]+)/y;

function stepsOf(path: string): Step[] {
  const steps: Step[] = [];
  PARTS.lastIndex = path.startsWith("$") ? 1 : 0;
  while (PARTS.lastIndex < path.length) {
    const match = PARTS.exec(path);
    if (!match) throw new Error(`the path ${path} is not understood`);
    const [, where, is, index, key] = match;
    if (where !== undefined) steps.push({ where, is: is as string });
    else steps.push(index === undefined ? { key: key as string } : { index: Number(index) });
  }
  return steps;
}

/** What lies at a path such as `$.jobs[?(@.id=='…')].error.type`; undefined where nothing does. */
export function valueAt(root: unknown, path: string): unknown {
  let value = root;
  for (const step of stepsOf(path)) {
    if (typeof value !== "object" || value === null) return undefined;
    const holder = value as Record<string, unknown>;
    if ("key" in step) value = Object.hasOwn(holder, step.key) ? holder[step.key] : undefined;
    else if (!Array.isArray(value)) return undefined;
    else if ("index" in step) value = value[step.index];
    else value = value.find((entry) => (entry as Record<string, unknown> | null)?.[step.where] === step.is);
  }
  return value;
}

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;

type Matcher = (argument: string, value: unknown) => boolean;

const MATCHERS: Readonly<Record<string, Matcher>> = {
  absent: (_, value) => value === undefined || value === null,
  "string:nonempty": (_, value) => typeof value === "string" && value !== "",
  "string:uuidv7": (_, value) => typeof value === "string" && UUID_V7.test(value),
  "string:datetime": (_, value) => typeof value === "string" && INSTANT.test(value),
  "string:contains": (part, value) => typeof value === "string" && value.includes(part),
  "string:pattern": (source, value) => typeof value === "string" && new RegExp(source).test(value),
  "number:positive": (_, value) => typeof value === "number" && value > 0,
  "number:range": (bounds, value) => {
    const [least, most] = bounds.split(",").map(Number) as [number, number];
    return typeof value === "number" && value >= least && value <= most;
  },
  "array:empty": (_, value) => Array.isArray(value) && value.length === 0,
  "array:length": (length, value) => Array.isArray(value) && value.length === Number(length),
};

/** A text of this shape is meant as a matcher, never as itself. */
const MATCHER = /^((?:string|number|array):\w+|absent|exists|any)(?:\(([\s\S]*)\)|:([\s\S]*))?$/;

/** Whether a value is what an assertion asks for. */
export function matches(wanted: unknown, value: unknown): boolean {
  if (typeof wanted === "string") {
    const [, name, inBrackets, afterColon] = MATCHER.exec(wanted) ?? [];
    if (name === undefined) return value === wanted;
    const matcher = MATCHERS[name];
    if (!matcher) throw new Error(`the matcher ${wanted} is not understood`);
    return matcher(inBrackets ?? afterColon ?? "", value);
  }
  if (typeof wanted !== "object" || wanted === null) return value === wanted;
  const { $in: list, $exists: exists, ...rest } = wanted as { $in?: unknown[]; $exists?: boolean };
  if (Object.keys(rest).length > 0) throw new Error(`${JSON.stringify(wanted)} is not understood`);
  const isThere = value !== undefined && value !== null;
  return (list?.includes(value) ?? true) && (exists === undefined || exists === isThere);
}
