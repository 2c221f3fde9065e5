import { expect, it, onTestFinished, vi } from "vitest";

it("a strict sandbox is refused where its program is missing, with what the system says", async () => {
  vi.resetModules();
  const { strictCommand } = await import("./namespaces.ts");
  const { PATH } = process.env;
  onTestFinished(() => {
    process.env.PATH = PATH;
  });
  process.env.PATH = "/nonexistent";
  expect(() => strictCommand()).toThrow(
    /^sandbox\.isolation: "strict" .*(ENOENT|not Linux).*unprivileged user namespaces, or leave it out$/,
  );
});
