/** What `import … from "curfew/server"` means in this folder: the source, so that examples need no build. */
export * from "../src/server/index.ts";
