import type { z } from "zod";
import { show } from "../../core/errors.ts";
import { HttpError } from "./http-error.ts";

type Issue = z.core.$ZodIssue;

/** Checks a value against its schema. The refusal names the field, its value and the fix. */
export function checked(schema: z.ZodType, value: unknown): unknown {
  const outcome = parsed(schema, value);
  if (outcome.success) return outcome.data;
  const { issues } = outcome.error;
  const issue = narrowed(issues[0] as Issue);
  const path = placeOf(issue).map(String);
  const field = path.join(".") || "body";
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : "";
  // The specification wants 422 for an invalid retry policy.
  const isRetry = path.includes("retry");
  throw new HttpError(
    isRetry ? 422 : 400,
    isRetry ? "schema_validation" : "invalid_request",
    `${field}: ${complaint(issue, path, valueAt(value, placeOf(issue)))}${more}`,
    { type: "validation_error", details: { field } },
  );
}

/**
 * zod reads the length of a value before it knows its type, and throws on an object whose `length` is no number. That is
 * the sender's mistake, so it is a 400.
 */
function parsed(schema: z.ZodType, value: unknown): ReturnType<z.ZodType["safeParse"]> {
  try {
    return schema.safeParse(value);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    const message =
      'body: an object with a "length" stands where a text or a list is expected; send a text or a list';
    throw new HttpError(400, "invalid_request", message, { type: "validation_error", cause: error });
  }
}

/** The mistake in the alternative that the sender probably meant: the one whose fields fit the furthest. */
function narrowed(issue: Issue): Issue {
  if (issue.code !== "invalid_union") return issue;
  const meant = issue.errors
    .filter((mistakes) => mistakes.length > 0 && mistakes.every(({ path }) => path.length > 0))
    .sort((a, b) => likelihood(b) - likelihood(a))[0]?.[0];
  return meant ? narrowed({ ...meant, path: [...issue.path, ...meant.path] }) : issue;
}

/** A mistake further inside is more likely. A fixed value, such as the type of a workflow, that is not there is the least. */
function likelihood(mistakes: readonly Issue[]): number {
  if (mistakes.some(({ code }) => code === "invalid_value")) return 0;
  return Math.min(...mistakes.map(({ path }) => path.length));
}

/** An unknown field is the place of its own mistake. */
function placeOf(issue: Issue): readonly PropertyKey[] {
  return issue.code === "unrecognized_keys" ? [...issue.path, issue.keys[0] as string] : issue.path;
}

function valueAt(root: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, key) => (value as Record<PropertyKey, unknown> | null | undefined)?.[key],
    root,
  );
}

/** Fields whose values are write-only, with all below them. */
const SECRET = new Set(["secret", "headers"]);

function complaint(issue: Issue, path: readonly string[], value: unknown): string {
  if (issue.code === "unrecognized_keys") return "it is not known here; leave it out";
  const wanted = wantedBy(issue);
  if (value === undefined) return `it is missing; ${wanted}`;
  const shown = path.some((name) => SECRET.has(name)) ? "(not shown)" : show(value);
  return `${shown} is not valid; ${wanted}`;
}

/** The fix. Our own schemas bring their message; messages of zod are rewritten here. */
function wantedBy(issue: Issue): string {
  const kinds = kindsOf(issue);
  if (kinds.length > 0) return `send ${kinds.join(" or ")}`;
  return issue.message.charAt(0).toLowerCase() + issue.message.slice(1);
}

const KINDS: Readonly<Record<string, string>> = {
  int: "a whole number",
  number: "a number",
  string: "a text",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  record: "an object",
  nonoptional: "a value",
};

const UNITS: Readonly<Record<string, readonly [one: string, many: string]>> = {
  string: [" character", " characters"],
  array: [" entry", " entries"],
};

function counted(count: number | bigint, origin: string): string {
  return `${count}${UNITS[origin]?.[Number(count) === 1 ? 0 : 1] ?? ""}`;
}

function kindsOf(issue: Issue): string[] {
  switch (issue.code) {
    case "invalid_type": {
      const kind = KINDS[issue.expected];
      return kind === undefined ? [] : [kind];
    }
    case "invalid_value":
      return issue.values.map((one) => JSON.stringify(one));
    case "too_small":
      return [`${counted(issue.minimum, issue.origin)} at least`];
    case "too_big":
      return [`${counted(issue.maximum, issue.origin)} at most`];
    case "invalid_union":
      return [...new Set(issue.errors.flatMap((alternative) => alternative.slice(0, 1).flatMap(kindsOf)))];
    default:
      return [];
  }
}
