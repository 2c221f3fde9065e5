import { refuse } from "../errors.ts";

/** Headers of a subscription that are sent with each call: names to values. */
export type CallHeaders = { readonly [name: string]: string };

const MOST = 20;
const LONGEST_NAME = 64;
const LONGEST_VALUE = 1_024;
const NAME = /^[A-Za-z][A-Za-z0-9_-]*$/;
/** Visible ASCII, with single spaces inside: no line break can begin another header. */
const VALUE = /^[!-~]+( [!-~]+)*$/;
/** Headers that belong to the connection, to the body or to the signature. */
const OWN =
  /^(host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|content-.*|proxy-.*|user-agent|x-ojs-.*)$/;

export function parseCallHeaders(headers: unknown, field: string): CallHeaders {
  if (typeof headers !== "object" || headers === null || Array.isArray(headers))
    throw refuse("invalid_option", field, typeof headers, 'write an object such as { "X-Team": "mail" }');
  const entries = Object.entries(headers);
  if (entries.length > MOST)
    throw refuse("invalid_option", field, entries.length, `name at most ${MOST} headers`);
  const names = new Set<string>();
  for (const [name, value] of entries) {
    checkName(name, field);
    if (names.has(name.toLowerCase()))
      throw refuse("invalid_option", `${field}.${name}`, name, "name each header once");
    names.add(name.toLowerCase());
    // The value may be a secret, so no message repeats it.
    if (typeof value !== "string" || value.length > LONGEST_VALUE || !VALUE.test(value)) {
      const fix = `use 1 to ${LONGEST_VALUE} visible ASCII characters, with single spaces between them`;
      throw refuse("invalid_option", `${field}.${name}`, `this ${typeof value}`, fix);
    }
  }
  return Object.fromEntries(entries as [string, string][]);
}

function checkName(name: string, field: string): void {
  if (name.length > LONGEST_NAME || !NAME.test(name)) {
    const fix = `use 1 to ${LONGEST_NAME} letters, digits, "-" and "_", and begin with a letter`;
    throw refuse("invalid_option", field, name, fix);
  }
  if (OWN.test(name.toLowerCase()))
    throw refuse("invalid_option", `${field}.${name}`, name, "the server sets it itself; use another name");
}
