/**
 * `node scripts/bundle-package.ts [folder]`: joins the modules that tsc wrote into `dist` to a few files. Node needs half a
 * millisecond to load a module, so `import "curfew"` takes a third of the time, and so does the start of each sandbox. Names
 * stay as they are, so stacks can be read. A few small packages are compiled in.
 */
import { copyFileSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { type BuildOptions, build, type Plugin } from "esbuild";
import { mergeChunks } from "./merge-chunks.ts";

const root = join(import.meta.dirname, "..");
const dist = process.argv[2] ?? join(root, "dist");
const joined = `${dist}.joined`;

/** A sandbox loads these beside the module of a user, which imports curfew: they must share its code. */
const SHARING = ["sandbox/child.js", "demo/render-report.js"];
/** A process and a thread that run nothing else. */
const ALONE = ["sandbox/reaper-process.js", "stores/sqlite/checkpoint-thread.js"];
/** What is loaded often. Chunks that the same of these load become one file. */
const QUICK = ["index.js", "cli/main.js", "sandbox/child.js", "calls/index.js"];
/** Small packages without dependencies of their own that would cost every start, or every user, a package. */
const COMPILED_IN = ["commander", "temporal-polyfill", "temporal-utils"];
/** It finds other files by its own address, so it must stay where it is. */
const FIXED = "ports/package-file.js";

interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
  readonly bin: Readonly<Record<string, string>>;
  readonly imports: Readonly<Record<string, string>>;
}

const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Manifest;
const exported = Object.values(manifest.exports).flatMap((entry) =>
  typeof entry === "string" ? [] : [entry.default],
);
const entries = [...exported, ...Object.values(manifest.bin)].map((path) => relative("dist", path));

const keepFixed: Plugin = {
  name: "keep the file that finds others",
  setup(builder) {
    builder.onResolve({ filter: /\/package-file\.js$/ }, () => ({ path: "#package-file", external: true }));
  },
};

/** All other packages stay packages. */
const keepPackages: Plugin = {
  name: "keep packages",
  setup(builder) {
    builder.onResolve({ filter: /^[^./#]/ }, ({ path, kind }) =>
      kind === "entry-point" || COMPILED_IN.some((name) => path === name || path.startsWith(`${name}/`))
        ? undefined
        : { path, external: true },
    );
  },
};

const common: BuildOptions = {
  absWorkingDir: dist,
  outdir: joined,
  outbase: dist,
  bundle: true,
  format: "esm",
  platform: "node",
  target: "es2023",
  chunkNames: "chunks/[name]-[hash]",
  legalComments: "none",
  nodePaths: [join(root, "node_modules")],
  plugins: [keepFixed, keepPackages],
  logLevel: "warning",
};
/** Paths in the report of a build are relative to `dist`. */
const inJoined = (path: string) => relative(joined, resolve(dist, path)).replaceAll("\\", "/");
const inDist = (paths: readonly string[]) => paths.map((path) => join(dist, path));
const { metafile } = await build({
  ...common,
  entryPoints: inDist([...entries, ...SHARING]),
  splitting: true,
  metafile: true,
});
const outputs = Object.fromEntries(
  Object.entries(metafile.outputs).map(([path, output]) => [
    inJoined(path),
    {
      ...output,
      imports: output.imports.map((one) => ({ ...one, path: one.external ? one.path : inJoined(one.path) })),
    },
  ]),
);
await mergeChunks(joined, outputs, QUICK);
await build({ ...common, entryPoints: inDist(ALONE) });
mkdirSync(join(joined, "ports"), { recursive: true });
copyFileSync(join(dist, FIXED), join(joined, FIXED));

const filesIn = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));

for (const name of filesIn(dist)) {
  if (name.startsWith("dashboard")) continue;
  // Nobody imports the command line, so nobody reads its types.
  if (name.endsWith(".js") || /^(?:cli|demo)\/.*\.d\.ts$/.test(name)) rmSync(join(dist, name));
}
for (const name of filesIn(joined)) {
  mkdirSync(dirname(join(dist, name)), { recursive: true });
  renameSync(join(joined, name), join(dist, name));
}
rmSync(joined, { recursive: true });
for (const name of COMPILED_IN) {
  const license = join(root, "node_modules", name, "LICENSE");
  copyFileSync(license, join(dist, "chunks", `LICENSE.${name}`));
}
