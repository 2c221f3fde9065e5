import { expect, it } from "vitest";
import { warningsOn } from "../http/body-warnings.ts";
import { ROUTES } from "../routes/all.ts";
import { nameOf, openApiText, operationId } from "./openapi.ts";
import { EXAMPLES } from "./openapi-examples.ts";

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly example?: unknown }>> };
}

interface Document {
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, { readonly $ref?: string }>> };
}

const text = openApiText();
const document = JSON.parse(text) as Document;
const operations = Object.values(document.paths).flatMap((path) => Object.values(path));

it("describes every schema that it refers to, and none by itself alone", () => {
  const { schemas } = document.components;
  const named = [...text.matchAll(/#\/components\/schemas\/(\w+)/g)].map(([, name]) => name as string);
  expect(named.length).toBeGreaterThan(100);
  expect(named.filter((name) => !(name in schemas))).toEqual([]);
  expect(Object.keys(schemas).filter((name) => schemas[name]?.$ref !== undefined)).toEqual([]);
  // Generators make a type of each, and nobody knows what `__schema0` is.
  expect(Object.keys(schemas).filter((name) => !/^[A-Z][A-Za-z0-9]*$/.test(name))).toEqual([]);
});

it("describes each thing once: no object with four fields or more stands in two places", () => {
  const places = new Map<string, string[]>();
  const look = (value: unknown, place: string): void => {
    if (typeof value !== "object" || value === null) return;
    const { type, properties } = value as { readonly type?: unknown; readonly properties?: object };
    if (type === "object" && Object.keys(properties ?? {}).length >= 4) {
      const key = JSON.stringify(value);
      places.set(key, [...(places.get(key) ?? []), place]);
    }
    for (const [name, inner] of Object.entries(value)) look(inner, `${place}/${name}`);
  };
  look(document, "");
  expect(places.size).toBeGreaterThan(100);
  expect([...places.values()].filter((list) => list.length > 1)).toEqual([]);
});

it("gives every operation a name of its own that is valid in any language", () => {
  const ids = operations.map((operation) => operation.operationId);
  expect(ids).toHaveLength(ROUTES.length);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.filter((id) => !/^[a-z][A-Za-z0-9]+$/.test(id))).toEqual([]);
  expect(operationId({ method: "GET", path: "/ojs/v1/admin/jobs/:id" })).toBe("getAdminJobsById");
});

it("declares every tag that it uses, and no other", () => {
  const used = new Set(operations.flatMap(({ tags }) => tags));
  expect(new Set(document.tags.map(({ name }) => name))).toEqual(used);
  expect(document.tags.every(({ description }) => description.length > 10)).toBe(true);
  expect(document.servers.map(({ url }) => url)).toEqual(["/"]);
});

it("has an example for every body with a name, which the server would accept without a warning", () => {
  const named = ROUTES.filter(({ body }) => body && nameOf(body) !== undefined);
  expect(named.length).toBeGreaterThan(30);
  for (const { method, path, body } of named) {
    const name = body && nameOf(body);
    if (!body || name === undefined || name === "LoginRequest") continue;
    const example = EXAMPLES[name];
    expect([`${method} ${path}`, name, body.safeParse(example).error]).toEqual([
      `${method} ${path}`,
      name,
      undefined,
    ]);
    expect([name, example && warningsOn(body, example)]).toEqual([name, []]);
  }
  const shown = operations.filter(({ requestBody }) =>
    Object.values(requestBody?.content ?? {}).some(({ example }) => example !== undefined),
  );
  expect(shown.length).toBeGreaterThan(30);
});
