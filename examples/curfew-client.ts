/** What `import … from "curfew/client"` means in this folder: the source, so that examples need no build. */
export * from "../src/client/index.ts";
