import { z } from "zod";
import { isAudited, type Route } from "../route.ts";
import { ROUTES } from "../routes/all.ts";
import { EXAMPLES, TAGS } from "./openapi-examples.ts";

type Fields = Record<string, unknown>;

const JSON_TYPE = "application/openjobspec+json";

const ERROR_SCHEMA = {
  type: "object",
  required: ["error"],
  properties: {
    error: {
      type: "object",
      required: ["code", "message", "retryable", "request_id"],
      properties: {
        code: { type: "string" },
        type: { type: "string" },
        message: { type: "string", description: "Names the field, the value and the fix." },
        retryable: { type: "boolean" },
        details: {},
        hint: { type: "string" },
        docs_url: { type: "string" },
        request_id: { type: "string" },
      },
    },
  },
};

const COMMON_REPLIES: Readonly<Record<number, string>> = {
  400: "A field is missing or wrong; the message names it",
  401: "The key is missing or not known",
  403: "The key may not do this",
  413: "The body is too large",
  429: "Too many requests with this key",
  500: "The server failed",
  503: "The store does not answer",
};

const AUDIT_REASON = {
  name: "X-Audit-Reason",
  in: "header",
  required: false,
  description: "Why this is done, for the audit; `reason` in the body does the same.",
  schema: { type: "string", maxLength: 500 },
};

/** For routes without a body. */
const AUDIT_QUERY = {
  name: "reason",
  in: "query",
  required: false,
  description: "Why this is done, for the audit.",
  schema: { type: "string", maxLength: 500 },
};

function schemaOf(schema: z.ZodType, io: "input" | "output"): Fields {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
    io,
    unrepresentable: "any",
    reused: "inline",
    override: ({ jsonSchema }) => closeTuple(jsonSchema),
  }) as Fields;
  return rest;
}

/** Spectral and some generators refuse `items: false`, which ends a tuple. `maxItems` says the same. */
function closeTuple(schema: Fields): void {
  const { prefixItems, items } = schema as { prefixItems?: readonly unknown[]; items?: unknown };
  if (!prefixItems || items !== false) return;
  schema.items = {};
  schema.maxItems = prefixItems.length;
  // JSON Schema wants one item at least here.
  if (prefixItems.length === 0) delete schema.prefixItems;
}

function parametersOf(route: Route): Fields[] {
  const inPath = [...route.path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  const inHead = isAudited(route) ? [AUDIT_REASON, ...(route.body ? [] : [AUDIT_QUERY])] : [];
  if (!route.query) return [...inPath, ...inHead];
  const { properties = {} } = schemaOf(route.query, "input") as { properties?: Record<string, unknown> };
  const inQuery = Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    required: false,
    schema,
  }));
  return [...inPath, ...inQuery, ...inHead];
}

function repliesOf(route: Route, schemas: Record<string, unknown>): Fields {
  const errors = { content: { [JSON_TYPE]: { schema: { $ref: "#/components/schemas/Error" } } } };
  // Every route refuses query parameters that it does not know.
  const open = { 400: COMMON_REPLIES[400] as string, ...route.replies };
  const all = route.right === "open" ? open : { ...COMMON_REPLIES, ...route.replies };
  return Object.fromEntries(
    Object.entries(all).map(([status, description]) => [
      status,
      {
        description,
        ...(Number(status) >= 400
          ? errors
          : route.reply && { content: contentOf(route.reply, schemas, "output") }),
      },
    ]),
  );
}

/** A name for generated clients, such as `getAdminJobsById`. */
export function operationId({ method, path }: Pick<Route, "method" | "path">): string {
  const words = path
    // Some are served at the root and below the base path.
    .replace(/^\/(?!ojs\/)/, "/server/")
    .replace(/^\/ojs\/v1\b/, "")
    .split("/")
    .filter((part) => part !== "")
    .flatMap((part) => (part.startsWith(":") ? ["by", part.slice(1)] : part.split(/[^a-zA-Z0-9]+/)));
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
}

/** Who may call it, what it sees, and whether the audit has it. */
function describe(route: Route): string {
  const right = route.right === "open" ? "Needs no key." : `Needs the right \`${route.right}\`.`;
  const scope = { tenant: " Stays within the tenant.", server: " Sees the whole server.", anyone: "" };
  return right + scope[route.scope] + (isAudited(route) ? " Is audited." : "");
}

function operationOf(route: Route, schemas: Record<string, unknown>): Fields {
  const parameters = parametersOf(route);
  return {
    operationId: operationId(route),
    summary: route.summary,
    description: describe(route),
    tags: [route.tag],
    ...(route.right === "open" ? { security: [] } : { "x-curfew-right": route.right }),
    ...(parameters.length > 0 && { parameters }),
    ...(route.body && { requestBody: bodyOf(route.body, schemas) }),
    responses: repliesOf(route, schemas),
  };
}

function bodyOf(body: z.ZodType, schemas: Record<string, unknown>): Fields {
  const isRequired = !body.safeParse(undefined).success;
  return { ...(isRequired && { required: true }), content: contentOf(body, schemas, "input") };
}

/** The name of a schema, also where a step before it changes what was sent. */
export function nameOf(schema: z.ZodType): string | undefined {
  const named = schema instanceof z.ZodPipe ? (schema.out as z.ZodType) : schema;
  return schema.meta()?.id ?? named.meta()?.id;
}

/** Schemas with a name are described once and referred to. */
function contentOf(body: z.ZodType, schemas: Record<string, unknown>, io: "input" | "output"): Fields {
  const name = nameOf(body);
  const { id: _id, $defs, ...schema } = schemaOf(body, io) as { id?: string; $defs?: Record<string, Fields> };
  for (const [key, { id: _inner, ...definition }] of Object.entries($defs ?? {})) schemas[key] = definition;
  const example = io === "input" && name !== undefined ? EXAMPLES[name] : undefined;
  if (name === undefined) return { [JSON_TYPE]: { schema } };
  // A schema that is already defined has become a reference to itself.
  if (!("$ref" in schema)) schemas[name] = schema;
  return { [JSON_TYPE]: { schema: { $ref: `#/components/schemas/${name}` }, ...(example && { example }) } };
}

/** The OpenAPI document, made from the schemas that check requests. */
function openApiDocument(): Fields {
  const schemas: Record<string, unknown> = { Error: ERROR_SCHEMA };
  const paths: Record<string, Fields> = {};
  for (const route of ROUTES) {
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route, schemas) };
  }
  const document = {
    openapi: "3.1.0",
    info: {
      title: "curfew",
      version: "1.0",
      description: "Open Job Spec over HTTP, with all five timeouts enforced by the server.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/", description: "The server that this document comes from" }],
    security: [{ key: [] }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
    components: { schemas, securitySchemes: { key: { type: "http", scheme: "bearer" } } },
  };
  // Schemas refer to each other by their place in this document.
  return JSON.parse(JSON.stringify(document).replaceAll("#/$defs/", "#/components/schemas/")) as Fields;
}

let text: string | undefined;

/** The document as text, made on first use. */
export function openApiText(): string {
  text ??= `${JSON.stringify(openApiDocument(), null, 2)}\n`;
  return text;
}
