import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, extname, join, posix, relative } from "node:path";
import { docPages, PAGES, ROOT } from "./layout.ts";

/** Pages outside docs/ that belong to the site, and their place there. */
const PLACED: Readonly<Record<string, string>> = {
  "site/index.md": "index.md",
  "README.md": "project/readme.md",
  "docs/README.md": "contents.md",
  "ARCHITECTURE.md": "project/architecture.md",
  "CHANGELOG.md": "project/changelog.md",
  "CONTRIBUTING.md": "project/contributing.md",
};

/** Files that pages show as pictures. All others that they link to get a page with their text. */
const ASSETS = new Set([".png", ".svg"]);

/** The most files that one page of sources shows whole. A folder with more lists its parts. */
const MOST_FILES_SHOWN = 12;

/** The anchor of a heading, as GitHub makes it, so that links work in both places. */
export function slugOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(/\s/g, "-");
}

interface Link {
  readonly from: string;
  readonly to: string;
  readonly anchor: string;
}

/** Copies pages to where VitePress reads them, and turns their links into links of the site. */
class Staging {
  /** Files and folders of the repository to which pages link, and which get a page of their own. */
  readonly #sources = new Set<string>();
  readonly #links: Link[] = [];
  readonly #anchors = new Map<string, Set<string>>();
  readonly #tracked: readonly string[] = trackedFiles();

  run(): void {
    rmSync(PAGES, { recursive: true, force: true });
    for (const page of docPages()) this.#stage(`docs/${page}.md`, `${page}.md`);
    for (const [from, to] of Object.entries(PLACED)) this.#stage(from, to);
    for (const path of this.#tracked) {
      if (path.startsWith("docs/guides/images/")) this.#copy(path, path.slice("docs/".length));
    }
    this.#copy("docs/openapi.json", "public/openapi.json");
    this.#copy("site/mark.svg", "public/mark.svg");
    this.#sources.add("examples");
    // A page of a folder names further pages, so the set grows while it is walked.
    for (const path of this.#sources) this.#stageSource(path);
    const broken = this.#brokenAnchors();
    if (broken.length > 0) throw new Error(`links to headings that do not exist:\n${broken.join("\n")}`);
  }

  #stage(from: string, to: string): void {
    const text = readFileSync(join(ROOT, from), "utf8");
    this.#anchors.set(to, anchorsOf(text));
    this.#write(to, outsideCode(text, (prose) => this.#prose(from, to, prose)).replace(MERMAID, ""));
  }

  #prose(from: string, to: string, prose: string): string {
    return prose.replaceAll(
      /\]\((?!https?:|mailto:)([^)\s#]*)(#[^)\s]*)?\)/g,
      (_all, target: string, anchor = "") => {
        const place = target === "" ? to : this.#placeOf(posix.join(posix.dirname(from), target));
        if (anchor !== "") this.#links.push({ from, to: place, anchor: anchor.slice(1) });
        return target === "" ? `](${anchor})` : `](${relativeLink(to, place)}${anchor})`;
      },
    );
  }

  /** Where a file or folder of the repository is on the site. */
  #placeOf(path: string): string {
    const plain = path.replace(/\/$/, "");
    const placed = PLACED[plain];
    if (placed !== undefined) return placed;
    if (plain === "docs/openapi.json") return "openapi.json";
    const isPage = plain.startsWith("docs/") && plain.endsWith(".md");
    if (isPage || (plain.startsWith("docs/") && ASSETS.has(extname(plain))))
      return plain.slice("docs/".length);
    if (!existsSync(join(ROOT, plain))) throw new Error(`a page links to ${plain}, which does not exist`);
    this.#sources.add(plain);
    return sourcePlace(plain);
  }

  #stageSource(path: string): void {
    const isFolder = statSync(join(ROOT, path)).isDirectory();
    const files = this.#tracked.filter((file) => (isFolder ? file.startsWith(`${path}/`) : file === path));
    const shown = files.filter((file) => !file.endsWith("package-lock.json"));
    // A search finds pages that explain, not the files behind them.
    const title = `---\nsearch: false\n---\n\n# ${path}\n\nFrom the repository, as it was when this site was built.\n`;
    const block = (file: string) => `## ${basename(file)}\n\n\`${file}\`\n\n${codeBlock(file)}`;
    const isLong = shown.length > MOST_FILES_SHOWN;
    const body = isLong ? this.#parts(path, shown) : shown.map(block).join("\n");
    this.#write(sourcePlace(path), `${title}\n${body}`);
  }

  #parts(folder: string, files: readonly string[]): string {
    const parts = new Set(files.map((file) => file.slice(folder.length + 1).split("/")[0] as string));
    const lines = [...parts].map((part) => {
      const path = `${folder}/${part}`;
      this.#sources.add(path);
      return `- [${part}](${relativeLink(sourcePlace(folder), sourcePlace(path))})`;
    });
    return `${lines.join("\n")}\n`;
  }

  #brokenAnchors(): string[] {
    return this.#links
      .filter(({ to, anchor }) => this.#anchors.get(to)?.has(anchor) === false)
      .map(({ from, to, anchor }) => `${from}: ${to}#${anchor}`);
  }

  #write(to: string, text: string): void {
    const file = join(PAGES, to);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }

  #copy(from: string, to: string): void {
    cpSync(join(ROOT, from), join(PAGES, to), { recursive: true });
  }
}

/** VitePress draws no Mermaid. The table under the one drawing says the same. */
const MERMAID = /^```mermaid\n.*?^```\n\n?/ms;

/** Applies `change` to the text between code blocks. */
function outsideCode(text: string, change: (prose: string) => string): string {
  return text
    .split(/(^```.*?^```$)/ms)
    .map((part) => (part.startsWith("```") ? part : change(part)))
    .join("");
}

function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  outsideCode(text, (prose) => {
    for (const [, heading] of prose.matchAll(/^#{1,6} (.+)$/gm)) {
      const slug = slugOf((heading as string).replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1"));
      let free = slug;
      for (let count = 1; anchors.has(free); count++) free = `${slug}-${count}`;
      anchors.add(free);
    }
    return prose;
  });
  return anchors;
}

function sourcePlace(path: string): string {
  const isFolder = statSync(join(ROOT, path)).isDirectory();
  return isFolder ? `source/${path}/index.md` : `source/${path.replaceAll(".", "-")}.md`;
}

function relativeLink(from: string, to: string): string {
  if (to === "openapi.json") return "/openapi.json";
  const path = relative(dirname(from), to);
  return path.startsWith(".") ? path : `./${path}`;
}

const LANGUAGES: Readonly<Record<string, string>> = {
  service: "ini",
  Dockerfile: "docker",
  tsx: "tsx",
  yml: "yaml",
};
const KNOWN = new Set(["ts", "js", "json", "yaml", "sh", "md", "sql", "css", "html", "toml"]);

function codeBlock(file: string): string {
  const kind = extname(file).slice(1) || basename(file);
  const language = LANGUAGES[kind] ?? (KNOWN.has(kind) ? kind : "text");
  const text = readFileSync(join(ROOT, file), "utf8");
  return text.includes("\0") ? "A binary file.\n" : `\`\`\`\`${language}\n${text.trimEnd()}\n\`\`\`\`\n`;
}

function trackedFiles(): string[] {
  const listing = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: ROOT,
    encoding: "utf8",
  });
  return listing.split("\0").filter((path) => path !== "" && existsSync(join(ROOT, path)));
}

/** Fills the folder of pages from docs/ and the landing page. Throws if a link leads nowhere. */
export function stagePages(): void {
  new Staging().run();
}
