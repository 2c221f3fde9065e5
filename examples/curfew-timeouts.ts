/** What `import … from "curfew/timeouts"` means in this folder. */
export * from "../src/timeouts.ts";
