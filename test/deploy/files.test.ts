import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { SERVER_PACKAGES } from "../../src/core/load-package.ts";
import { parseDuration } from "../../src/core/time.ts";
import { openEngine, silentLogger } from "../../src/index.ts";
import { createServer, Keyring } from "../../src/server/index.ts";
import { testFolder } from "../support/folders.ts";

const root = join(import.meta.dirname, "../..");
const deploy = join(root, "deploy");
const read = (path: string) => readFileSync(join(deploy, path), "utf8");

/** A close takes at most this long after its drain: 5 s for handlers, 5 s for the store (SEMANTICS 5.2). */
const AFTER_DRAIN = 10;

/** The seconds of `--drain` in a command. */
function drainOf(words: readonly string[]): number {
  const drain = words[words.indexOf("--drain") + 1];
  return parseDuration(drain, "--drain") / 1_000;
}

type Labels = Readonly<Record<string, string>>;

interface Probe {
  readonly httpGet: { readonly path: string };
}

interface Container {
  readonly args: readonly string[];
  readonly startupProbe: Probe;
  readonly readinessProbe: Probe;
  readonly livenessProbe: Probe;
  readonly lifecycle: { readonly preStop: { readonly sleep: { readonly seconds: number } } };
  readonly securityContext: object;
}

interface Deployment {
  readonly selector: { readonly matchLabels: Labels };
  readonly template: {
    readonly metadata: { readonly labels: Labels };
    readonly spec: {
      readonly terminationGracePeriodSeconds: number;
      readonly securityContext: { readonly runAsNonRoot: boolean };
      readonly containers: readonly [Container];
    };
  };
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: unknown;
}

interface Compose {
  readonly services: {
    readonly workers: {
      readonly build: { readonly context: string; readonly dockerfile: string };
      readonly environment: { readonly CURFEW_KEYS: string };
      readonly depends_on: { readonly postgres: { readonly condition: string } };
      readonly stop_grace_period: string;
    };
  };
  readonly secrets: Readonly<Record<string, object>>;
}

interface Collector {
  readonly service: {
    readonly pipelines: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;
  };
  readonly [components: string]: object;
}

const manifests: Manifest[] = ["workers", "autoscaling", "monitoring"].flatMap((name) =>
  parseAllDocuments(read(`kubernetes/${name}.yaml`)).map((document) => {
    if (document.errors.length > 0) throw document.errors[0];
    return document.toJS() as Manifest;
  }),
);
/** The one manifest of a kind; its spec has the type that the caller names. */
function only<Spec>(kind: string): Manifest & { readonly spec: Spec } {
  const found = manifests.filter((manifest) => manifest.kind === kind);
  expect(found).toHaveLength(1);
  return found[0] as Manifest & { readonly spec: Spec };
}
const deployment = manifests.find(({ kind }) => kind === "Deployment") as Manifest & {
  readonly spec: Deployment;
};
const [container] = deployment.spec.template.spec.containers;

describe("the Kubernetes manifests", () => {
  it("give a pod more time to stop than its drain takes", () => {
    const { terminationGracePeriodSeconds } = deployment.spec.template.spec;
    const preStop = container.lifecycle.preStop.sleep.seconds;
    expect(terminationGracePeriodSeconds).toBeGreaterThanOrEqual(
      preStop + drainOf(container.args) + AFTER_DRAIN,
    );
  });

  it("select and scale the pods that they start", () => {
    const { labels } = deployment.spec.template.metadata;
    expect(deployment.spec.selector.matchLabels).toEqual(labels);
    for (const kind of ["PodDisruptionBudget", "PodMonitor"])
      expect(only<Pick<Deployment, "selector">>(kind).spec.selector.matchLabels).toEqual(labels);
    expect(only<{ selector: Labels }>("Service").spec.selector).toEqual(labels);
    const { scaleTargetRef, minReplicaCount } = only<{
      scaleTargetRef: { name: string };
      minReplicaCount: number;
    }>("ScaledObject").spec;
    expect(scaleTargetRef.name).toBe(deployment.metadata.name);
    expect(minReplicaCount).toBeGreaterThanOrEqual(1);
  });

  it("probe paths that need no key and answer with 200", async () => {
    const engine = await openEngine({ store: "memory:", logger: silentLogger });
    onTestFinished(() => engine.close());
    const server = createServer(engine, {
      logger: silentLogger,
      keys: new Keyring([], { now: () => engine.now() }),
    });
    const paths = (["startupProbe", "readinessProbe", "livenessProbe"] as const).map(
      (name) => container[name].httpGet.path,
    );
    expect(paths).toHaveLength(3);
    for (const path of paths)
      expect([path, (await server.fetch(new Request(`http://pod${path}`))).status]).toEqual([path, 200]);
    expect((await server.fetch(new Request("http://pod/metrics"))).status).toBe(401);
    // A database that does not answer must not restart the process.
    engine.store.clock = () => Promise.reject(new Error("down"));
    const liveness = container.livenessProbe.httpGet.path;
    expect((await server.fetch(new Request(`http://pod${liveness}`))).status).toBe(200);
    const readiness = container.readinessProbe.httpGet.path;
    expect((await server.fetch(new Request(`http://pod${readiness}`))).status).toBe(503);
    await server.close();
  });

  it("run as a user that is not root, on a file system that cannot be written", () => {
    expect(deployment.spec.template.spec.securityContext.runAsNonRoot).toBe(true);
    expect(container.securityContext).toMatchObject({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
    });
  });
});

/** The instructions of the Dockerfile, with continued lines joined. */
const instructions = read("Dockerfile")
  .replaceAll(/\\\n\s*/g, "")
  .split("\n")
  .filter((line) => /^[A-Z]+ /.test(line))
  .map((line) => {
    const [, name, rest] = /^([A-Z]+) (.*)$/.exec(line) as RegExpExecArray;
    return { name: name as string, rest: rest as string };
  });
const last = (name: string) => instructions.findLast((one) => one.name === name)?.rest ?? "";
const command = JSON.parse(last("CMD")) as string[];
const healthcheck = JSON.parse(last("HEALTHCHECK").replace(/^.* CMD /, "")) as string[];

/** What the image has in /app, with curfew from the source. */
function unpackImage(): string {
  const folder = testFolder();
  cpSync(join(deploy, "app"), folder, { recursive: true });
  const curfew = join(folder, "node_modules/curfew");
  mkdirSync(join(curfew, "dist/cli"), { recursive: true });
  const url = (path: string) => pathToFileURL(join(root, path)).href;
  writeFileSync(
    join(curfew, "package.json"),
    '{ "name": "curfew", "type": "module", "exports": "./dist/index.js" }',
  );
  writeFileSync(join(curfew, "dist/index.js"), `export * from "${url("src/index.ts")}";`);
  writeFileSync(join(curfew, "dist/cli/main.js"), `await import("${url("src/cli/main.ts")}");`);
  return folder;
}

async function freePort(): Promise<string> {
  const server = createHttpServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  return String(port);
}

describe("the Dockerfile", () => {
  it("has a stage for dependencies, a user that is not root, a health check, and copies no secrets", () => {
    expect(instructions.filter(({ name }) => name === "FROM")).toHaveLength(2);
    expect(last("USER")).toBe("node");
    expect(last("HEALTHCHECK")).toContain("--start-period");
    expect(read(".dockerignore").split("\n")).toEqual(
      expect.arrayContaining(["node_modules", "keys.json", ".env"]),
    );
  });

  it("installs what its CMD needs: the packages of the server, and the driver", () => {
    const { dependencies } = JSON.parse(read("app/package.json")) as { dependencies: object };
    expect(command).toContain("serve");
    expect(Object.keys(dependencies)).toEqual(expect.arrayContaining(["curfew", "pg", ...SERVER_PACKAGES]));
  });

  it("starts with its CMD, is found healthy by its HEALTHCHECK, and stops with 0", async () => {
    const cwd = unpackImage();
    const port = await freePort();
    const env = {
      ...process.env,
      CURFEW_PORT: port,
      CURFEW_HOST: "127.0.0.1",
      CURFEW_STORE: `sqlite:${join(cwd, "jobs.db")}`,
    };
    const [program, ...flags] = command;
    expect(program).toBe("node");
    const child = spawn(process.execPath, flags, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    const ended = once(child, "close");
    onTestFinished(() => void (child.exitCode === null && child.kill("SIGKILL")));
    let said = "";
    child.stdout.on("data", (text) => {
      said += text;
    });
    child.stderr.on("data", (text) => {
      said += text;
    });
    await expect.poll(() => said).toContain('"listening"');
    const check = async () =>
      (await once(spawn(process.execPath, healthcheck.slice(1), { env }), "close"))[0];
    expect(await check()).toBe(0);
    const body = JSON.stringify({ type: "hello", args: [] });
    const headers = { "content-type": "application/json" };
    const reply = await fetch(`http://127.0.0.1:${port}/ojs/v1/jobs`, { method: "POST", headers, body });
    const { job } = (await reply.json()) as { job: { id: string } };
    const state = async () => {
      const read = await fetch(`http://127.0.0.1:${port}/ojs/v1/jobs/${job.id}`);
      return ((await read.json()) as { job: { state: string } }).job.state;
    };
    await expect.poll(state).toBe("completed");
    child.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
    expect(await check()).toBe(1);
  });
});

describe("the compose file", () => {
  const { services, secrets } = parse(read("compose.yaml")) as Compose;

  it("waits for the database, gives workers time to drain, and builds what is there", () => {
    const { workers } = services;
    expect(workers.depends_on.postgres.condition).toBe("service_healthy");
    expect(parseDuration(workers.stop_grace_period, "grace") / 1_000).toBeGreaterThanOrEqual(
      drainOf(command) + AFTER_DRAIN,
    );
    const context = resolve(deploy, workers.build.context);
    expect(existsSync(resolve(context, workers.build.dockerfile))).toBe(true);
    expect(existsSync(join(context, "worker.js"))).toBe(true);
    expect(workers.environment.CURFEW_KEYS).toBe(`/run/secrets/${Object.keys(secrets)[0]}`);
  });
});

describe("the systemd unit", () => {
  const unit = new Map(
    [...read("systemd/curfew-workers.service").matchAll(/^(\w+)=(.*)$/gm)].map(([, key, value]) => [
      key,
      value,
    ]),
  );

  it("starts the same command as the image, and gives it time to drain", () => {
    const words = (unit.get("ExecStart") ?? "").split(" ");
    expect(words.slice(1)).toEqual(command.slice(1));
    expect(Number(unit.get("TimeoutStopSec"))).toBeGreaterThanOrEqual(drainOf(words) + AFTER_DRAIN);
    expect(unit.get("KillMode")).toBe("mixed");
  });
});

describe("the collector", () => {
  it("uses only components that it configures", () => {
    const { service, ...components } = parse(read("opentelemetry/collector.yaml")) as Collector;
    const used = Object.values(service.pipelines).flatMap((pipeline) =>
      Object.entries(pipeline).flatMap(([kind, names]) => names.map((name) => `${kind}.${name}`)),
    );
    const configured = Object.entries(components).flatMap(([kind, named]) =>
      Object.keys(named).map((name) => `${kind}.${name}`),
    );
    expect(new Set(used)).toEqual(new Set(configured));
  });
});
