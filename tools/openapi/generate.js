// Writes the types of docs/openapi.json for openapi-fetch: node generate.js <file>
import { writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";

const document = new URL("../../docs/openapi.json", import.meta.url);
writeFileSync(process.argv[2], astToString(await openapiTS(document)));
