import { posix } from "node:path";
import { type Finding, isTest, type Source, walk } from "./source.ts";

/** Which layer may import which; a layer may always import itself. CONTRIBUTING.md quotes it. */
const ALLOWED: Record<string, readonly string[]> = {
  core: [],
  ports: ["core"],
  ojs: ["core"],
  engine: ["core", "ports"],
  stores: ["core", "ports"],
  sandbox: ["core", "ports"],
  calls: ["core", "ports", "engine/runtime"],
  server: ["core", "ports", "ojs", "engine"],
  client: ["core", "ports", "ojs", "engine", "sandbox"],
  // Calls the endpoints of webhooks. Engines get it through a port.
  webhooks: ["core", "ports", "ojs"],
  "open.ts": ["core", "ports", "engine", "stores", "sandbox", "webhooks"],
  // Reads other job systems and writes through an engine that it is given.
  migrate: ["core", "ports", "engine"],
  demo: ["core", "ports", "engine", "sandbox"],
  cli: ["core", "ports", "engine/runtime", "open.ts", "server", "client", "demo", "migrate", "tracing.ts"],
  // A program for the browser. It shares the types of replies with the server, and talks HTTP.
  dashboard: ["ojs"],
  testing: ["core", "ports", "engine", "stores/memory"],
  // Its file testing.ts is an entry of its own, which puts an application under virtual time.
  nestjs: ["core", "ports", "engine", "open.ts", "testing"],
  "timeouts.ts": ["core", "ports", "engine", "open.ts"],
  "tracing.ts": ["core", "ports"],
  "index.ts": ["core", "ports", "ojs", "engine", "stores", "sandbox", "server", "client", "open.ts"],
};

/** Packages that only compute: the calendar and the zones, and the instants of a cron expression. */
const PURE_PACKAGES = new Set(["temporal-polyfill", "croner"]);

interface Import {
  from: string;
  line: number;
}

/** Everything a file imports: statements, re-exports, `import()` and `import("…")` in types. */
export function importsOf(source: Source): Import[] {
  const found: Import[] = [];
  const add = (from: unknown, start: number) => {
    if (typeof from === "string") found.push({ from, line: source.lineAt(start) });
  };
  walk(source.program, (node) => {
    switch (node.type) {
      case "ImportDeclaration":
      case "ExportAllDeclaration":
      case "TSImportType":
        return add(node.source.value, node.start);
      case "ExportNamedDeclaration":
        return add(node.source?.value, node.start);
      case "ImportExpression":
        return add(node.source.type === "Literal" ? node.source.value : undefined, node.start);
    }
  });
  return found;
}

/** The layer of a path, or undefined outside src. */
function layerOf(path: string): string | undefined {
  const [top, layer] = path.split("/");
  return top === "src" ? layer : undefined;
}

/** The package's own name reaches the same files as a relative path and must not be a way around the rule. */
function resolve(path: string, from: string): string | undefined {
  if (from.startsWith(".")) return posix.join(posix.dirname(path), from);
  if (from === "curfew") return "src/index.ts";
  if (from === "curfew/testing") return "src/testing/index.ts";
  if (from === "curfew/server") return "src/server/index.ts";
  if (from === "curfew/client") return "src/client/index.ts";
  if (from === "curfew/calls") return "src/calls/index.ts";
  if (from === "curfew/timeouts") return "src/timeouts.ts";
  if (from === "curfew/nestjs") return "src/nestjs/index.ts";
  if (from === "curfew/nestjs/testing") return "src/nestjs/testing.ts";
  if (from === "curfew/tracing") return "src/tracing.ts";
  return undefined;
}

/** Imports go one way only, and core is pure: no packages, no Node. */
export function importDirections(sources: readonly Source[]): Finding[] {
  return sources.flatMap((source) => {
    const layer = layerOf(source.path);
    if (layer === undefined || isTest(source.path)) return [];
    return importsOf(source).flatMap(({ from, line }) => {
      const problem = misdirection(layer, from, resolve(source.path, from));
      return problem ? [{ path: source.path, line, ...problem }] : [];
    });
  });
}

function misdirection(layer: string, from: string, target: string | undefined) {
  const allowed = ALLOWED[layer];
  if (!allowed) {
    const fix =
      "Move the file into a layer, or add its layer to test/tidy/imports.ts and to CONTRIBUTING.md.";
    return { says: `belongs to no known layer: src/${layer}.`, fix };
  }
  if (target === undefined) {
    if (layer !== "core" || PURE_PACKAGES.has(from)) return undefined;
    const fix = "Pass what is needed as an argument, or move the code to the engine.";
    return { says: `core must not import ${from}: it is pure.`, fix };
  }
  const other = layerOf(target);
  const isAllowed = allowed.some((name) => name === other || target.startsWith(`src/${name}/`));
  if (other === layer || isAllowed) return undefined;
  const sees =
    allowed.length > 0 ? `${layer} may import ${allowed.join(", ")}` : `${layer} imports only itself`;
  const fix = `${sees}. Move what is shared into one of these, or pass it in from above.`;
  return { says: `${layer} must not import ${other ?? target}: ${from}.`, fix };
}

/** A cycle means that none of its files can be read, tested or moved alone; types are no excuse. */
export function importCycles(sources: readonly Source[]): Finding[] {
  const paths = new Set(sources.map(({ path }) => path));
  const edges = new Map(
    sources.map((source) => [
      source.path,
      importsOf(source).flatMap(({ from, line }) => {
        const target = resolve(source.path, from);
        return target !== undefined && paths.has(target) ? [{ target, line }] : [];
      }),
    ]),
  );
  const findings: Finding[] = [];
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]) => {
    for (const { target, line } of edges.get(path) ?? []) {
      const since = trail.indexOf(target);
      if (since >= 0) {
        const says = `closes an import cycle: ${[...trail.slice(since), target].join(" -> ")}.`;
        findings.push({ path, line, says, fix: "Move what both need into a file that imports neither." });
      } else if (!done.has(target)) {
        visit(target, [...trail, target]);
      }
    }
    done.add(path);
  };
  for (const path of paths) if (!done.has(path)) visit(path, [path]);
  return findings;
}
