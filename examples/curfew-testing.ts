/** What `import … from "curfew/testing"` means in this folder. */
export * from "../src/testing/index.ts";
