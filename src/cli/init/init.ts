import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { CommandFailed } from "../exit.ts";
import { packageVersion } from "../version.ts";
import { starterCommands, starterFiles, starterPackages } from "./starter.ts";

export interface Initialised {
  readonly folder: string;
  readonly written: readonly string[];
  /** Files that exist and stay as they are. */
  readonly kept: readonly string[];
  /** What to run first: it installs what is missing, and makes an existing project one of ES modules. */
  readonly setup: readonly string[];
  /** The commands to run; `isWritten` if package.json has them. */
  readonly scripts: ReturnType<typeof starterCommands> & { readonly isWritten: boolean };
}

/** An address that the starter can use. It becomes source code, so quotes and spaces are refused. */
const ADDRESS = /^(?:sqlite:|postgres(?:ql)?:\/\/)[^\s"'`\\$]+$/;

/** Writes the starter into a folder. An existing file is never changed. */
export function init(folder: string, store: string): Initialised {
  if (!ADDRESS.test(store))
    throw new CommandFailed(
      "usage",
      "--store: not an address for a starter; write sqlite:<file> or postgres://…",
    );
  const root = resolve(folder);
  const manifest = readManifest(join(root, "package.json"));
  const runner = hasVitest(manifest) ? "vitest" : "node";
  const options = { name: packageName(basename(root)), version: packageVersion(), store, runner } as const;
  const written: string[] = [];
  const kept: string[] = [];
  try {
    mkdirSync(root, { recursive: true });
    for (const [path, text] of Object.entries(starterFiles(options))) {
      if (existsSync(join(root, path))) {
        kept.push(path);
        continue;
      }
      // The flag refuses a file that another process made meanwhile.
      writeFileSync(join(root, path), text, { flag: "wx" });
      written.push(path);
    }
  } catch (error) {
    throw new CommandFailed("failed", `init: ${root} cannot be written: ${(error as Error).message}`, {
      cause: error,
    });
  }
  const isWritten = written.includes("package.json");
  const setup = isWritten ? ["npm install"] : setupCommands(manifest, starterPackages(options));
  return { folder, written, kept, setup, scripts: { ...starterCommands(options), isWritten } };
}

type Packages = Readonly<Record<string, string>>;

interface Manifest {
  readonly type?: string;
  readonly dependencies?: Packages;
  readonly devDependencies?: Packages;
}

/** What a project that has a package.json lacks. `npm init` writes "commonjs", in which the starter does not run. */
function setupCommands(manifest: Manifest, needed: ReturnType<typeof starterPackages>): string[] {
  const has = { ...manifest.dependencies, ...manifest.devDependencies };
  const install = (packages: Packages, flag: string) => {
    const missing = Object.entries(packages).filter(([name]) => has[name] === undefined);
    if (missing.length === 0) return [];
    return [`npm install${flag} ${missing.map(([name, range]) => `${name}@"${range}"`).join(" ")}`];
  };
  return [
    ...(manifest.type === "module" ? [] : ["npm pkg set type=module"]),
    ...install(needed.dependencies, ""),
    ...install(needed.devDependencies, " -D"),
  ];
}

function readManifest(path: string): Manifest {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Manifest;
  } catch {
    return {};
  }
}

function hasVitest({ dependencies, devDependencies }: Manifest): boolean {
  return dependencies?.vitest !== undefined || devDependencies?.vitest !== undefined;
}

/** The name of a folder as npm allows it. */
function packageName(folder: string): string {
  return (
    folder
      .toLowerCase()
      .replaceAll(/[^a-z0-9-]+/g, "-")
      .replaceAll(/^-+|-+$/g, "") || "my-app"
  );
}
