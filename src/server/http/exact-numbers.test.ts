import { expect, it } from "vitest";
import { refuseInexact } from "./exact-numbers.ts";

it.each([
  "9007199254740992",
  "-9007199254740992",
  "123456789012345",
  "1e300",
  "12345678901234567e3",
  "0.1234567890123456789",
  "[-0, 0, 1234567890123456]",
  '"9007199254740993"',
  '{"9007199254740993":1}',
  '["12345678901234567890", "\\"12345678901234567891"]',
  JSON.stringify([2 ** 60, 2 ** 53, 1e21, -(2 ** 70), Number.MAX_VALUE]),
])("lets %s through, which comes back as it was", (text) => {
  expect(() => refuseInexact(text)).not.toThrow();
});

it.each([
  ["9007199254740993", "the number 9007199254740993"],
  ['{"args":[{"id":9223372036854775807}]}', "the number 9223372036854775807"],
  ["[1,-9007199254740993]", "the number -9007199254740993"],
  ["[1152921504606846976]", "1152921504606846976"],
  [`[${"9".repeat(400)}]`, "send it as a text"],
])("refuses %s, which would come back as another", (text, message) => {
  expect(() => refuseInexact(text)).toThrow(message);
});
