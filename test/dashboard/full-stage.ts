import type { Browser } from "playwright-core";
import { type SeededPages, seedPages } from "./seed-pages.ts";
import { type DashboardStage, openDashboard, type StageOptions } from "./stage.ts";

export interface FullStage extends DashboardStage {
  readonly pages: SeededPages;
}

/** A stage with something on every page. A worker works over HTTP and is heard of. */
export async function openFullDashboard(browser: Browser, options: StageOptions = {}): Promise<FullStage> {
  const stage = await openDashboard(browser, options);
  stage.clock.stop();
  const pages = await seedPages(stage.test, options.hostile);
  stage.clock.go();
  if (!options.keys) await beat(stage.url, "http-worker-1");
  return { ...stage, pages };
}

export async function beat(url: string, worker: string): Promise<unknown> {
  const response = await fetch(`${url}/ojs/v1/workers/heartbeat`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ worker_id: worker, queues: ["crm"], active_jobs: [] }),
  });
  if (!response.ok) throw new Error(`the beat was refused: ${await response.text()}`);
  return response.json();
}
