import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const examples = join(import.meta.dirname, "..", "examples");

/**
 * Compiles the numbered examples file by file, as a user's own build does: without types and `await using`, which Node 22 cannot
 * read. Returns their names.
 */
export async function compileExamples(folder: string): Promise<string[]> {
  const names = readdirSync(examples).filter((name) => /^\d\d-/.test(name));
  await build({
    entryPoints: names.flatMap((name) =>
      readdirSync(join(examples, name))
        .filter((file) => file.endsWith(".ts"))
        .map((file) => join(examples, name, file)),
    ),
    outdir: folder,
    outbase: examples,
    outExtension: { ".js": ".mjs" },
    format: "esm",
    platform: "node",
    target: "node22",
    logLevel: "error",
    // Files are compiled one by one, so that sandboxes find their modules. Imports name what was written.
    bundle: true,
    packages: "external",
    plugins: [
      {
        name: "own-files",
        setup({ onResolve, onLoad }) {
          onResolve({ filter: /^\.\.?\// }, ({ path }) => ({
            path: path.replace(/\.ts$/, ".mjs"),
            external: true,
          }));
          onLoad({ filter: /\.ts$/ }, ({ path }) => ({
            contents: readFileSync(path, "utf8").replaceAll(/new URL\("(.*)\.ts"/g, 'new URL("$1.mjs"'),
            loader: "ts",
          }));
        },
      },
    ],
  });
  return names;
}

/** What an example prints. */
export function wantedOutput(name: string): string {
  return readFileSync(join(examples, name, "output.txt"), "utf8");
}
