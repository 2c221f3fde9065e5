/** What `import … from "curfew/nestjs"` means in this folder: the source, so that examples need no build. */
export * from "../src/nestjs/index.ts";
