import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { refuse, refuseUnknownKeys } from "../core/errors.ts";
import { dashboardFolder } from "../ports/package-file.ts";
import type { PlainHeaders } from "./http/http-error.ts";

export interface DashboardOptions {
  /** The path under which it is served, such as `"/admin/jobs"`. Default `/`. */
  readonly base?: string;
  /** What every page says about this server, such as that it is a test system. Default: nothing. */
  readonly notice?: DashboardNotice;
}

export interface DashboardNotice {
  /** A word or two beside the search field, such as `"Staging"`. */
  readonly label: string;
  /** A sentence on the overview, with links to pages of the dashboard. */
  readonly text?: string;
  readonly links?: readonly {
    readonly text: string /** Such as `"jobs?state=active"`. */;
    readonly to: string;
  }[];
}

export interface ServedFile {
  readonly status: number;
  readonly headers: PlainHeaders;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};

/** A page may load files of this server only, and run no inline code. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join("; ");

const PAGE_HEADERS: PlainHeaders = {
  "Content-Security-Policy": POLICY,
  "Cross-Origin-Opener-Policy": "same-origin",
  "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
};

const NOT_BUILT = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>curfew</title></head>
<body><main>
<h1>curfew</h1>
<p>The server runs, but its dashboard is not built. In a clone, run <code>npm run dashboard</code> and load this page again.</p>
<p><a href="/health">Health</a>, <a href="/openapi.json">the interface as OpenAPI</a></p>
</main></body>
</html>
`;

/** Normalises the base to `"/admin/jobs/"`; undefined if the dashboard is off. */
export function basePath(option: boolean | DashboardOptions | undefined): string | undefined {
  if (option === false) return undefined;
  if (option === undefined || option === true) return "/";
  refuseUnknownKeys(option, "dashboard", ["base", "notice"]);
  const { base = "/" } = option;
  if (typeof base !== "string" || !/^(?:\/[A-Za-z0-9._~-]+)*\/?$/.test(base) || base.includes(".."))
    throw refuse("invalid_option", "dashboard.base", base, 'write a path such as "/admin/jobs"');
  if (/^\/(?:ojs|health|ready|metrics)(?:\/|$)/.test(base))
    throw refuse("invalid_option", "dashboard.base", base, "the API uses this path; use another one");
  return base.endsWith("/") ? base : `${base}/`;
}

const LABEL_LIMIT = 24;
const TEXT_LIMIT = 300;
const MOST_LINKS = 12;

export function noticeOf(option: boolean | DashboardOptions | undefined): DashboardNotice | null {
  const notice = typeof option === "object" ? option.notice : undefined;
  if (notice === undefined) return null;
  refuseUnknownKeys(notice, "dashboard.notice", ["label", "text", "links"]);
  const { label, text = "", links = [] } = notice;
  const check = (value: unknown, field: string, most: number) => {
    if (typeof value !== "string" || value.length > most)
      throw refuse(
        "invalid_option",
        `dashboard.notice.${field}`,
        value,
        `use a text of up to ${most} characters`,
      );
  };
  check(label, "label", LABEL_LIMIT);
  check(text, "text", TEXT_LIMIT);
  if (!Array.isArray(links) || links.length > MOST_LINKS)
    throw refuse("invalid_option", "dashboard.notice.links", links, `list up to ${MOST_LINKS} links`);
  for (const [index, link] of links.entries()) {
    check(link?.text, `links[${index}].text`, LABEL_LIMIT * 3);
    // Only pages of the dashboard itself: no scheme and no host.
    if (typeof link?.to !== "string" || !/^[\w-]*(?:[/?][\w\-.~%/?=&+]*)?$/.test(link.to))
      throw refuse(
        "invalid_option",
        `dashboard.notice.links[${index}].to`,
        link?.to,
        'write a page of the dashboard, such as "jobs?state=active"',
      );
  }
  return notice;
}

interface Packed {
  readonly plain: Uint8Array<ArrayBuffer>;
  readonly gzip: Uint8Array<ArrayBuffer> | undefined;
  readonly headers: PlainHeaders;
}

/** The built dashboard: a few hundred kilobytes, read on first use and kept in memory. */
export class DashboardFiles {
  readonly #base: string;
  #files: ReadonlyMap<string, Packed> | undefined;

  constructor(base: string) {
    this.#base = base;
  }

  /** The file at a path below the base. Every path outside `assets/` is a page of the browser program. */
  serve(path: string, accepts: string | null): ServedFile | null {
    const folder = dashboardFolder();
    this.#files ??= folder ? readFiles(fileURLToPath(folder), this.#base) : new Map();
    // Page paths may hold dots, so only this folder holds files.
    const isAsset = path.startsWith("assets/");
    const file = this.#files.get(isAsset ? path : "index.html");
    if (file) return sent(file, accepts);
    if (isAsset) return null;
    // Look again next time: the build may follow.
    this.#files = undefined;
    return sent(pack("not-built.html", Buffer.from(NOT_BUILT)), accepts, 503);
  }
}

function sent(file: Packed, accepts: string | null, status = 200): ServedFile {
  if (!file.gzip || !/\bgzip\b/.test(accepts ?? ""))
    return { status, headers: file.headers, bytes: file.plain };
  return { status, headers: { ...file.headers, "Content-Encoding": "gzip" }, bytes: file.gzip };
}

function pack(name: string, plain: Uint8Array<ArrayBuffer>): Packed {
  const isPage = name.endsWith(".html");
  return {
    plain,
    gzip: name.endsWith(".woff2") ? undefined : gzipSync(plain, { level: 9 }),
    headers: {
      "Content-Type": TYPES[extname(name)] ?? "application/octet-stream",
      // Asset names hold a hash of the content, so assets never change. The page does.
      "Cache-Control": name.startsWith("assets/") ? "public, max-age=31536000, immutable" : "no-store",
      Vary: "Accept-Encoding",
      ...(isPage && PAGE_HEADERS),
    },
  };
}

function readFiles(root: string, base: string): ReadonlyMap<string, Packed> {
  const files = new Map<string, Packed>();
  for (const entry of listOf(root)) {
    const name = entry.replaceAll("\\", "/");
    const bytes = readFileSync(join(root, entry));
    files.set(name, pack(name, name === "index.html" ? withBase(bytes, base) : bytes));
  }
  return files;
}

/** The build does not know the base. Its relative links would break on deeper paths, so they become absolute here. */
function withBase(page: Buffer<ArrayBuffer>, base: string): Buffer<ArrayBuffer> {
  const text = page
    .toString("utf8")
    .replaceAll('="./', `="${base}`)
    .replace('name="curfew-base" content="/"', `name="curfew-base" content="${base}"`);
  return Buffer.from(text);
}

function listOf(root: string): string[] {
  try {
    return readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length));
  } catch {
    return [];
  }
}
