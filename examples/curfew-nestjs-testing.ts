/** What `import … from "curfew/nestjs/testing"` means in this folder: the source, so that examples need no build. */
export * from "../src/nestjs/testing.ts";
