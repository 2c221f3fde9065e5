export { packageVersion } from "../ports/package-file.ts";
