/**
 * Open tabs for `bench/dashboard.ts`, in a process of its own. Takes the URL, how many, and whether they read. Each does
 * what the overview does: it follows the live line, and with its pulses reads again what the page shows, as often as the
 * page does.
 */
const [url = "", count = "0", reads = "reads"] = process.argv.slice(2);
const API = `${url}/ojs/v1`;

/** What the overview and its frame read, and how often at most, in milliseconds. */
const READS: readonly (readonly [path: string, every: number])[] = [
  ["/admin/stats", 5_000],
  ["/admin/queues?per_page=200", 5_000],
  ["/admin/workers?per_page=200", 5_000],
  ["/admin/jobs?per_page=200&state=active", 5_000],
  ["/admin/jobs?per_page=200&state=available&order=asc", 5_000],
  ["/admin/stats/history?period=1m&since=", 5_000],
  ["/admin/dead-letter/stats", 15_000],
  ["/events?types=job.stuck&limit=100", 15_000],
  ["/admin/system/maintenance", 15_000],
  ["/admin/doctor", 60_000],
];
const MINUTE = 60_000;

/** In whole minutes, as the page asks, so that all tabs ask for the same. */
const hourAgo = () => new Date(Math.floor(Date.now() / MINUTE - 60) * MINUTE).toISOString();

let pulses = 0;
let replies = 0;
let open = 0;

async function read(path: string): Promise<void> {
  const reply = await fetch(API + path, { headers: { "Cache-Control": "max-age=2" } });
  await reply.arrayBuffer();
  if (!reply.ok) throw new Error(`${path}: ${reply.status}`);
  replies += 1;
}

async function followTab(): Promise<void> {
  const readAt = new Map<string, number>();
  const line = await fetch(`${API}/admin/stats/stream?types=none`);
  open += 1;
  if (open === Number(count)) process.send?.({ open });
  const decoder = new TextDecoder();
  for await (const chunk of line.body as unknown as AsyncIterable<Uint8Array>) {
    if (!decoder.decode(chunk, { stream: true }).includes("event: metrics")) continue;
    pulses += 1;
    if (reads !== "reads") continue;
    const now = performance.now();
    for (const [path, every] of READS) {
      // Pulses are not exactly as far apart as reads are.
      if (now - (readAt.get(path) ?? Number.NEGATIVE_INFINITY) < every - 200) continue;
      readAt.set(path, now);
      void read(path.endsWith("since=") ? path + encodeURIComponent(hourAgo()) : path);
    }
  }
}

for (let nth = 0; nth < Number(count); nth++) void followTab();
process.on("message", () => process.send?.({ pulses, replies }));
process.on("disconnect", () => process.exit(0));
