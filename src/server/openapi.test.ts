import { expect, it } from "vitest";
import { openApiText } from "./openapi.ts";

interface Document {
  readonly components: { readonly schemas: Readonly<Record<string, { readonly $ref?: string }>> };
}

it("describes every schema that it refers to, and none by itself alone", () => {
  const text = openApiText();
  const { schemas } = (JSON.parse(text) as Document).components;
  const named = [...text.matchAll(/#\/components\/schemas\/(\w+)/g)].map(([, name]) => name as string);
  expect(named.length).toBeGreaterThan(100);
  expect(named.filter((name) => !(name in schemas))).toEqual([]);
  expect(Object.keys(schemas).filter((name) => schemas[name]?.$ref !== undefined)).toEqual([]);
});
