/** Joins the chunks that the same entries of the package load, so that `import "curfew"` opens a few files and not fifty. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { build, type Metafile } from "esbuild";

type Outputs = Metafile["outputs"];

/** A chunk, and the exports that it has under other names in the file that it was joined into. */
interface Joined {
  readonly file: string;
  readonly suffix: string;
}

/**
 * esbuild makes a chunk for every set of files that share code, also of files that are loaded late. Chunks are joined here
 * if the same of the `entries` load them at once. A chunk imports only chunks that at least the same entries load, so no two
 * joined files import each other. Paths are relative to `folder`, with `/`.
 */
export async function mergeChunks(
  folder: string,
  outputs: Outputs,
  entries: readonly string[],
): Promise<void> {
  const joined = new Map<string, Joined>();
  for (const [number, chunks] of groupsOf(outputs, entries).entries()) {
    const file = `chunks/shared-${number}.js`;
    await joinChunks(folder, file, chunks, outputs);
    for (const [index, chunk] of chunks.entries()) joined.set(chunk, { file, suffix: `$${index}` });
  }
  refuseLateOnes(outputs, joined);
  for (const chunk of joined.keys()) rmSync(join(folder, chunk));
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (name.endsWith(".js")) rewriteImports(folder, name.replaceAll("\\", "/"), joined);
  }
}

/** The chunks of each set of entries, if it has more than one. */
function groupsOf(outputs: Outputs, entries: readonly string[]): string[][] {
  const loadedBy = new Map<string, string>();
  for (const entry of entries) {
    for (const chunk of loadedWith(outputs, entry)) {
      if (outputs[chunk]?.entryPoint === undefined)
        loadedBy.set(chunk, `${loadedBy.get(chunk) ?? ""} ${entry}`);
    }
  }
  const groups = Map.groupBy(loadedBy.keys(), (chunk) => loadedBy.get(chunk));
  return [...groups.values()].filter((chunks) => chunks.length > 1);
}

function loadedWith(outputs: Outputs, entry: string): Set<string> {
  const loaded = new Set([entry]);
  for (const file of loaded) {
    if (!outputs[file]) throw new Error(`merge-chunks: ${file} is no file of the build`);
    for (const { path, kind, external } of outputs[file].imports)
      if (kind === "import-statement" && !external) loaded.add(path);
  }
  return loaded;
}

async function joinChunks(
  folder: string,
  file: string,
  chunks: readonly string[],
  outputs: Outputs,
): Promise<void> {
  const inside = new Set(chunks.map((chunk) => posix.basename(chunk)));
  const contents = chunks.map((chunk, index) => {
    const names = (outputs[chunk]?.exports ?? []).map((name) => `${name} as ${name}$${index}`);
    return `export { ${names.join(", ")} } from "./${posix.basename(chunk)}";\n`;
  });
  await build({
    stdin: { contents: contents.join(""), resolveDir: join(folder, dirname(file)), loader: "js" },
    outfile: join(folder, file),
    bundle: true,
    format: "esm",
    platform: "node",
    target: "es2023",
    legalComments: "none",
    // The chunks are in a package without side effects, but their order is that of a bundle.
    ignoreAnnotations: true,
    logLevel: "warning",
    plugins: [
      {
        name: "join these chunks only",
        setup(builder) {
          builder.onResolve({ filter: /.*/ }, ({ path, kind }) =>
            kind === "import-statement" && inside.has(posix.basename(path))
              ? undefined
              : { path, external: true },
          );
        },
      },
    ],
  });
}

/** The namespace of a chunk that is loaded late would have the exports of all. */
function refuseLateOnes(outputs: Outputs, joined: ReadonlyMap<string, Joined>): void {
  for (const [file, { imports }] of Object.entries(outputs))
    for (const { path, kind } of imports)
      if (kind === "dynamic-import" && joined.has(path))
        throw new Error(`merge-chunks: ${file} loads ${path} late, so it cannot be joined`);
}

const STATIC_IMPORT = /^import (?:(\{[^}]*\}) from )?"(\.[^"]+)";/gm;

function rewriteImports(folder: string, file: string, joined: ReadonlyMap<string, Joined>): void {
  const path = join(folder, file);
  const text = readFileSync(path, "utf8");
  const changed = text.replace(STATIC_IMPORT, (statement, names: string | undefined, from: string) => {
    const found = joined.get(posix.join(posix.dirname(file), from));
    if (!found) return statement;
    const relative = posix.relative(posix.dirname(file), found.file);
    const address = relative.startsWith(".") ? relative : `./${relative}`;
    if (names === undefined) return `import "${address}";`;
    return `import ${renamed(names, found.suffix)} from "${address}";`;
  });
  if (changed !== text) writeFileSync(path, changed);
}

/** `{ a, b as c }` becomes `{ a$1 as a, b$1 as c }`. */
function renamed(names: string, suffix: string): string {
  const list = names
    .slice(1, -1)
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  const change = (name: string) => {
    const [exported, local = exported] = name.split(" as ");
    return `${exported}${suffix} as ${local}`;
  };
  return `{ ${list.map(change).join(", ")} }`;
}
