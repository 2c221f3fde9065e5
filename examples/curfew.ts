/** What `import … from "curfew"` means in this folder: the source, so that examples need no build. */
export * from "../src/index.ts";
