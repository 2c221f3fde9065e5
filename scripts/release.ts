/**
 * `node scripts/release.ts minor` prepares a release: the version in package.json and package-lock.json, the heading in
 * CHANGELOG.md, a commit and a tag. Pushing the tag lets .github/workflows/release.yml test, publish with provenance, and
 * write the notes. With `--dry-run` it changes nothing, packs the package, and prints what it would do.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

const root = join(import.meta.dirname, "..");
const VERSION = /^(\d+)\.(\d+)\.(\d+)$/;

/** The version after this one. `step` is patch, minor, major, or a version that is higher. */
export function nextVersion(current: string, step: string): string {
  const now = partsOf(current);
  if (!now) throw new Error(`package.json: version ${current} is not x.y.z; correct it first`);
  const [major, minor, patch] = now;
  if (step === "major") return `${major + 1}.0.0`;
  if (step === "minor") return `${major}.${minor + 1}.0`;
  if (step === "patch") return `${major}.${minor}.${patch + 1}`;
  const wanted = partsOf(step);
  if (!wanted) throw new Error(`release: ${step} is not a version; use patch, minor, major or x.y.z`);
  const difference = wanted.map((part, nth) => part - (now[nth] as number)).find((part) => part !== 0) ?? 0;
  if (difference <= 0) throw new Error(`release: ${step} is not higher than ${current}; choose a higher one`);
  return step;
}

function partsOf(version: string): [number, number, number] | undefined {
  const match = VERSION.exec(version);
  return match ? [Number(match[1]), Number(match[2]), Number(match[3])] : undefined;
}

/** The changelog with a heading for the version under an empty `Unreleased`, and the notes of this version. */
export function releaseChangelog(
  text: string,
  version: string,
  date: string,
): { readonly text: string; readonly notes: string } {
  const heading = "## [Unreleased]\n";
  const start = text.indexOf(heading);
  if (start < 0)
    throw new Error('CHANGELOG.md: it has no heading "## [Unreleased]"; add one with what changed');
  if (text.includes(`\n## [${version}]`))
    throw new Error(`CHANGELOG.md: ${version} has a heading already; choose another version`);
  const after = start + heading.length;
  const next = /^## \[/m.exec(text.slice(after));
  const end = next ? after + next.index : text.length;
  const notes = text.slice(after, end).trim();
  if (!/^- /m.test(notes))
    throw new Error('CHANGELOG.md: nothing stands under "## [Unreleased]"; write what changed first');
  const rest = text.slice(end);
  return {
    text: `${text.slice(0, after)}\n## [${version}] - ${date}\n\n${notes}\n${rest === "" ? "" : `\n${rest}`}`,
    notes,
  };
}

/** A manifest with another version, and everything else as it was. Works for the lock file too. */
export function withVersion(text: string, version: string): string {
  const manifest = JSON.parse(text) as { version: string; packages?: Record<string, { version?: string }> };
  manifest.version = version;
  const own = manifest.packages?.[""];
  if (own) own.version = version;
  return `${JSON.stringify(manifest, null, 2)}\n`;
}

function run(program: string, ...flags: string[]): string {
  return execFileSync(program, flags, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
}

function refuseDirty(): void {
  const changed = run("git", "status", "--porcelain").trim();
  if (changed !== "") throw new Error(`release: the tree has changes; commit them first:\n${changed}`);
}

function release(step: string, isDry: boolean): void {
  const read = (name: string) => readFileSync(join(root, name), "utf8");
  const { version: current } = JSON.parse(read("package.json")) as { version: string };
  const version = nextVersion(current, step);
  const date = new Date().toISOString().slice(0, 10);
  const changelog = releaseChangelog(read("CHANGELOG.md"), version, date);
  if (run("git", "tag", "--list", `v${version}`).trim() !== "")
    throw new Error(`release: the tag v${version} exists; choose another version`);
  if (isDry) {
    const packed = JSON.parse(run("npm", "pack", "--dry-run", "--ignore-scripts", "--json")) as unknown;
    const [{ entryCount, size }] = (Array.isArray(packed) ? packed : Object.values(packed as object)) as [
      { entryCount: number; size: number },
    ];
    console.log(`would release ${current} -> ${version} (${date}), tag v${version}`);
    console.log(`would pack ${entryCount} files, ${Math.round(size / 1_000)} kB`);
    console.log(`notes: ${changelog.notes.split("\n").length} lines`);
    return;
  }
  refuseDirty();
  writeFileSync(join(root, "CHANGELOG.md"), changelog.text);
  for (const name of ["package.json", "package-lock.json"])
    writeFileSync(join(root, name), withVersion(read(name), version));
  run("git", "commit", "--all", "--message", `Release ${version}`);
  run("git", "tag", "--annotate", `v${version}`, "--message", `Release ${version}`);
  console.log(`released ${version} here; push it with: git push --follow-tags`);
}

if (import.meta.main) {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { "dry-run": { type: "boolean" } },
  });
  try {
    release(positionals[0] ?? "patch", values["dry-run"] ?? false);
  } catch (error) {
    console.error((error as Error).message);
    process.exitCode = 1;
  }
}
