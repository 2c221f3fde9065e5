import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { defineJob, openEngine, processor, silentLogger } from "../../src/index.ts";
import { createServer } from "../../src/server/index.ts";
import { findPromtool } from "./promtool.ts";

const run = promisify(execFile);
const deploy = join(import.meta.dirname, "../../deploy");
const read = (path: string) => readFileSync(join(deploy, path), "utf8");

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly summary: string; readonly action: string };
}
const rules = (parse(read("prometheus/rules.yml")) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  (group) => group.rules,
);

interface Board {
  readonly panels: { readonly title: string; readonly targets: { readonly expr: string }[] }[];
}
const board = JSON.parse(read("grafana/curfew.json")) as Board;
const scaler = (
  parse(read("kubernetes/autoscaling.yaml")) as { spec: { triggers: { metadata: { query: string } }[] } }
).spec.triggers;

/** Every expression, and where it stands. */
const expressions: [where: string, expr: string][] = [
  ...rules.map(({ alert, expr }): [string, string] => [`rule ${alert}`, expr]),
  ...board.panels.flatMap(({ title, targets }) =>
    targets.map(({ expr }): [string, string] => [`panel ${title}`, expr]),
  ),
  ...scaler.map(({ metadata }): [string, string] => ["autoscaling", metadata.query]),
];

/** What a server says about itself: the type of each metric, and the labels of its samples. */
let types: Map<string, string>;
let labels: Map<string, Set<string>>;

beforeAll(async () => {
  const engine = await openEngine({ store: "memory:", logger: silentLogger });
  const quick = defineJob({ type: "quick" });
  const slow = defineJob({ type: "slow", timeouts: { attempt: "1s", grace: "0s" }, retry: { attempts: 1 } });
  const worker = engine.work({
    processors: [processor(quick, () => {}), processor(slow, () => new Promise<never>(() => {}))],
  });
  const server = createServer(engine, { logger: silentLogger });
  await (await engine.enqueue(quick)).result({ within: "1m" });
  await (await engine.enqueue(slow)).result({ within: "1m" }).catch(() => {});
  const ask = (path: string) => server.fetch(new Request(`http://127.0.0.1${path}`));
  await ask("/health");
  const text = await (await ask("/metrics")).text();
  types = new Map(
    [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name as string, type as string]),
  );
  labels = new Map();
  for (const [, name, inner] of text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
    const seen = labels.get(name as string) ?? new Set();
    for (const [, label] of (inner ?? "").matchAll(/(\w+)="/g)) seen.add(label as string);
    labels.set(name as string, seen);
  }
  await server.close();
  await worker.close({ drain: "0s" });
  await engine.close();
});

/** Metric names in an expression: words with our prefixes. */
function namesIn(expr: string): string[] {
  return [...new Set([...expr.matchAll(/\b(?:ojs|curfew)_\w+/g)].map(([name]) => name))];
}

function isKnown(name: string): boolean {
  const family = name.replace(/_(?:bucket|sum|count)$/, "");
  return types.has(name) ? types.get(name) !== "histogram" : types.get(family) === "histogram";
}

describe("the board, the alert rules and the autoscaling", () => {
  it.each(expressions)("%s names only metrics that a server has", (_where, expr) => {
    const names = namesIn(expr);
    expect(names.length).toBeGreaterThan(0);
    expect(names.filter((name) => !isKnown(name))).toEqual([]);
  });

  it.each(expressions)("%s names only labels that these metrics have", (_where, expr) => {
    const known = new Set(namesIn(expr).flatMap((name) => [...(labels.get(name) ?? [])]));
    const named = [
      ...[...expr.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"/g)].map(([, label]) => label as string),
      ...[...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list]) => (list as string).split(/,\s*/)),
    ];
    const hasSamples = namesIn(expr).every((name) => labels.has(name));
    expect(hasSamples ? named.filter((label) => !known.has(label)) : []).toEqual([]);
  });

  it("sees names that do not exist", () => {
    expect(isKnown("ojs_job_enqueued_total")).toBe(true);
    expect(isKnown("curfew_fire_lateness_seconds_bucket")).toBe(true);
    expect(["curfew_fire_lateness_seconds", "ojs_job_enqueued", "ojs_workers"].filter(isKnown)).toEqual([]);
    expect(labels.get("ojs_job_timeout_count_total")).toContain("timeout_kind");
  });

  it("shows every metric of the server on the board", () => {
    const shown = new Set(
      board.panels.flatMap(({ targets }) => targets.flatMap(({ expr }) => namesIn(expr))),
    );
    const families = new Set(
      [...shown].map((name) => (types.has(name) ? name : name.replace(/_bucket$/, ""))),
    );
    expect([...types.keys()].filter((name) => !families.has(name))).toEqual([]);
  });

  it("has a summary and an action for each alert", () => {
    expect(rules.length).toBeGreaterThan(5);
    for (const { annotations } of rules) {
      expect(annotations.summary).not.toBe("");
      expect(annotations.action).not.toBe("");
    }
  });
});

describe("promtool", () => {
  const scratch = mkdtempSync(join(tmpdir(), "curfew-promtool-"));
  afterAll(() => rmSync(scratch, { recursive: true, force: true }));

  async function promtool(...flags: string[]): Promise<string> {
    const found = await findPromtool();
    if ("missing" in found) throw new Error(found.missing);
    const { stdout } = await run(found.path, flags, { cwd: scratch });
    return stdout;
  }

  it("accepts the rules, the configuration and every expression, and the alerts fire", async (context) => {
    const found = await findPromtool();
    if ("missing" in found) {
      console.warn(`SKIPPED: ${found.missing}`);
      context.skip(found.missing);
    }
    writeFileSync(join(scratch, "rules.yml"), read("prometheus/rules.yml"));
    writeFileSync(join(scratch, "token"), "secret");
    const config = read("prometheus/prometheus.yml").replace(
      "/etc/prometheus/curfew-token",
      join(scratch, "token"),
    );
    writeFileSync(join(scratch, "prometheus.yml"), config);
    expect(await promtool("check", "config", "prometheus.yml")).toContain(`${rules.length} rules found`);
    const recorded = expressions.map(([, expr], nth) => ({
      record: `checked:expression:${nth}`,
      expr: expr.replaceAll("$__rate_interval", "5m").replaceAll("$queue", ".*"),
    }));
    writeFileSync(join(scratch, "all.yml"), stringify({ groups: [{ name: "all", rules: recorded }] }));
    expect(await promtool("check", "rules", "all.yml")).toContain(`${recorded.length} rules found`);
    writeFileSync(join(scratch, "test.yml"), stringify(ALERTS));
    expect(await promtool("test", "rules", "test.yml")).toContain("SUCCESS");
  });
});

/** Jobs wait, and the last worker goes away after five minutes. A handler gets stuck. */
const ALERTS = {
  rule_files: ["rules.yml"],
  tests: [
    {
      interval: "1m",
      input_series: [
        { series: 'ojs_workers_active{instance="a"}', values: "1x5 0x20" },
        { series: 'ojs_queue_depth{instance="a",queue="mail",state="available"}', values: "7x25" },
        { series: 'curfew_stuck_total{instance="a"}', values: "0x5 1x20" },
      ],
      alert_rule_test: [
        { eval_time: "5m", alertname: "CurfewNoWorkers", exp_alerts: [] },
        {
          eval_time: "10m",
          alertname: "CurfewNoWorkers",
          exp_alerts: [
            {
              exp_labels: { severity: "critical" },
              exp_annotations: {
                summary: "Jobs wait and no worker is alive",
                action: "Look at the workers' log; `curfew doctor` says what it sees",
              },
            },
          ],
        },
        {
          eval_time: "8m",
          alertname: "CurfewStuckHandlers",
          exp_alerts: [
            {
              exp_labels: { severity: "warning" },
              exp_annotations: {
                summary: "Handlers ran past their hard deadline and were fenced off",
                action: "Let the handler hear its signal, or run it in a sandbox",
              },
            },
          ],
        },
      ],
    },
  ],
};
