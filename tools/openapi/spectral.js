// Lints a document with Spectral's rules for OpenAPI: node spectral.js <file>. Errors fail, warnings are counted.
import { readFileSync } from "node:fs";
import spectralCore from "@stoplight/spectral-core";
import rulesets from "@stoplight/spectral-rulesets";

const ERROR = 0;
const file = process.argv[2];
const spectral = new spectralCore.Spectral();
spectral.setRuleset(new spectralCore.Ruleset({ extends: [rulesets.oas] }));
const found = await spectral.run(JSON.parse(readFileSync(file, "utf8")));
const errors = found.filter(({ severity }) => severity === ERROR);
for (const { code, message, path } of errors) console.log(`error ${code}: ${message} (${path.join(".")})`);
console.log(`spectral: ${errors.length} errors, ${found.length - errors.length} warnings`);
process.exitCode = errors.length === 0 ? 0 : 1;
