import { expect, it } from "vitest";
import { refuseOtherRuntime } from "./sandboxed.ts";

it("a sandbox on Bun is refused with the way out, and on Node it is not", () => {
  expect(() => refuseOtherRuntime("pdf.render", { node: "24.3.0", bun: "1.4.4" })).toThrow(
    /work\.processors: .*the sandboxed .*pdf\.render.* on Bun 1\.4\.4.*run this worker with Node/,
  );
  expect(() => refuseOtherRuntime("pdf.render", process.versions)).not.toThrow();
});
