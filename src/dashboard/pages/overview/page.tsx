import { useState } from "preact/hooks";
import type { History } from "../../../ojs/replies/history-replies.ts";
import type {
  DeadLetterStats,
  Doctor,
  Events,
  Job,
  Page as PageOf,
  Queues,
  Stats,
  Workers,
} from "../../../ojs/replies/wire-replies.ts";
import { api } from "../../api/client.ts";
import { findJobs } from "../../api/jobs.ts";
import { areRead, useResource } from "../../api/resource.ts";
import { now, serverNow } from "../../state/clock.ts";
import { figures } from "../../state/live.ts";
import { href, query, setQuery } from "../../state/router.ts";
import { isAcrossTenants, may, notice, whyNot } from "../../state/session.ts";
import { Button, LinkButton } from "../../ui/button.tsx";
import { Failure, Skeleton, StaleNote } from "../../ui/callout.tsx";
import { Card, PageHead } from "../../ui/card.tsx";
import { countText, durationText, rateText } from "../../ui/format.ts";
import { Mark } from "../../ui/icon.tsx";
import { Sparkline } from "../../ui/sparkline.tsx";
import { Segments } from "../../ui/tabs.tsx";
import { Time } from "../../ui/time.tsx";
import { BulkForm } from "../jobs/bulk-form.tsx";
import { type Concern, concernsOf } from "./attention.ts";
import { Due } from "./due.tsx";
import { onTimeOf } from "./on-time.ts";
import { Plots } from "./plots.tsx";
import { RANGES, type Range } from "./ranges.ts";

const LATELY = 5_000;
const RARELY = 15_000;
const SELDOM = 60_000;
const SAMPLE = 200;
const MINUTE = 60_000;

function useSeen(range: Range) {
  const { span, period } = RANGES[range];
  const read = <Value,>(
    name: string,
    path: string,
    values: Record<string, string | number> = {},
    live = LATELY,
  ) => useResource(`overview ${name}`, (signal) => api.get<Value>(path, values, signal), { live });
  const list = (name: string, values: Record<string, string | number>) =>
    useResource<PageOf<Job>>(
      `overview ${name}`,
      (signal) => findJobs({ per_page: SAMPLE, ...values }, signal),
      { live: LATELY },
    );
  return {
    stats: read<Stats>("stats", "/admin/stats"),
    queues: read<Queues>("queues", "/admin/queues", { per_page: 200 }),
    workers: read<Workers>("workers", "/admin/workers", { per_page: 200 }),
    active: list("active", { state: "active" }),
    waiting: list("waiting", { state: "available", order: "asc" }),
    letters: read<DeadLetterStats>("letters", "/admin/dead-letter/stats", {}, RARELY),
    stuck: read<Events>("stuck", "/events", { types: "job.stuck", limit: 100 }, RARELY),
    paused: read<{ enabled: boolean; reason: string | null; started_at: string | null }>(
      "maintenance",
      "/admin/system/maintenance",
      {},
      RARELY,
    ),
    doctor: useResource(
      may("operate") && isAcrossTenants() ? "overview doctor" : null,
      (signal) => api.get<Doctor>("/admin/doctor", {}, signal),
      { live: SELDOM },
    ),
    history: useResource(
      `overview history ${range}`,
      (signal) =>
        api.get<History>(
          "/admin/stats/history",
          // In whole minutes, so that all tabs ask for the same.
          { period, since: new Date(Math.floor((serverNow() - span) / MINUTE) * MINUTE).toISOString() },
          signal,
        ),
      { live: range === "1h" ? LATELY : RARELY },
    ),
  };
}

/** What needs somebody, then how things are. */
export function Page() {
  const asked = query.value.get("range") as Range | null;
  const range: Range = asked !== null && asked in RANGES ? asked : "1h";
  const seen = useSeen(range);
  const { stats, queues, workers } = seen;
  const beside = [seen.active, seen.waiting, seen.letters, seen.stuck, seen.paused];
  if (!stats.data || !queues.data || !workers.data || !areRead(...beside)) {
    const failed = [stats, queues, workers].find(({ error }) => error);
    return (
      <>
        <PageHead title="Overview" />
        {failed?.error ? (
          <Failure what="The overview" error={failed.error} onRetry={failed.reload} />
        ) : (
          <Skeleton rows={6} />
        )}
      </>
    );
  }
  const concerns = concernsOf({
    now: now.value,
    queues: queues.data.items,
    workers: workers.data.items,
    active: seen.active.data,
    waiting: seen.waiting.data,
    deadLetters: seen.letters.data,
    history: seen.history.data?.data ?? [],
    stuck: seen.stuck.data?.events ?? [],
    doctor: seen.doctor.data,
    pausedAll: seen.paused.data,
  });
  return (
    <>
      <PageHead title="Overview">
        <Segments
          label="Range of the plots"
          value={range}
          options={(Object.keys(RANGES) as Range[]).map((one) => [one, one])}
          onChange={(value) => setQuery({ range: value === "1h" ? null : value }, { isStep: false })}
        />
      </PageHead>
      <StaleNote of={stats} what="What is" />
      <NoticeCard />
      <Attention concerns={concerns} at={queues.at} onChange={seen.letters.reload} />
      <Figures stats={stats.data} letters={seen.letters.data} history={seen.history.data} />
      <Due active={seen.active.data} waiting={seen.waiting.data} />
      <Plots history={seen.history} range={range} stats={stats.data} />
    </>
  );
}

/** What the server says about itself, with links to where something is to be seen. */
function NoticeCard() {
  const said = notice();
  if (!said?.text) return null;
  return (
    <Card title={said.label} note={said.text}>
      <div class="notice">
        {said.links && (
          <ul>
            {said.links.map(({ text, to }) => (
              <li key={to}>
                <a href={href(to)}>{text}</a>
              </li>
            ))}
          </ul>
        )}
      </div>
    </Card>
  );
}

function Attention({
  concerns,
  at,
  onChange,
}: {
  readonly concerns: readonly Concern[];
  readonly at: number | undefined;
  readonly onChange: () => void;
}) {
  const [retried, setRetried] = useState<Concern["retry"]>();
  const checked = (
    <>
      Checked <Time at={at} />
    </>
  );
  if (concerns.length === 0)
    return (
      <Card title="Nothing needs you" aside={checked}>
        <p class="calm">
          <Mark name="done" /> Queues have workers, workers beat, and no job is near its end.
        </p>
      </Card>
    );
  return (
    <Card title="Needs attention" note={concerns.length} aside={checked}>
      <ul class="attn">
        {concerns.map(({ id, mark, tone, title, text, since, action, to, retry }) => (
          <li key={id} class={`is-${tone}`}>
            <Mark name={mark} />
            <div class="what">
              <b class="anywhere">{title}</b>
              <p>{text}</p>
            </div>
            <span class="since">{since}</span>
            <span class="acts">
              {retry && (
                <Button small whyNot={whyNot("operate")} onClick={() => setRetried(retry)}>
                  Retry {countText(retry.count)}…
                </Button>
              )}
              <LinkButton small href={href(to)}>
                {action}
              </LinkButton>
            </span>
          </li>
        ))}
      </ul>
      {retried && (
        <BulkForm
          action="retry"
          target={retried.target}
          onClose={() => setRetried(undefined)}
          onDone={() => {
            setRetried(undefined);
            onChange();
          }}
        />
      )}
    </Card>
  );
}

interface FiguresProps {
  readonly stats: Stats;
  readonly letters: DeadLetterStats | undefined;
  readonly history: History | undefined;
}

/** Six numbers, each a link to what it counts. */
function Figures({ stats, letters, history }: FiguresProps) {
  const { jobs } = stats;
  const oldest = [...stats.oldest_waits].sort((a, b) => b.wait_ms - a.wait_ms)[0];
  const pace = figures.value?.throughput;
  const waits = oldest ? `oldest ${durationText(oldest.wait_ms)}` : "none waits";
  const over = jobs.completed + jobs.discarded + jobs.cancelled;
  const onTime = onTimeOf(history);
  const all: readonly (readonly [name: string, value: string, unit: string, below: string, to: string])[] = [
    ["On time", onTime.value, onTime.unit, onTime.below, "jobs?tab=timeouts"],
    [
      "Ended",
      pace ? rateText(pace.processed_per_second) : "–",
      "/s",
      `${countText(over)} in 24 h`,
      "jobs?state=completed",
    ],
    [
      "Running",
      countText(jobs.active),
      "",
      `${countText(stats.workers)} ${stats.workers === 1 ? "worker" : "workers"}`,
      "jobs?state=active",
    ],
    ["Waiting", countText(jobs.available), "", waits, "jobs?state=available&order=asc"],
    [
      "Scheduled",
      countText(jobs.scheduled),
      "",
      `${countText(jobs.retryable)} wait for a retry`,
      "jobs?state=scheduled",
    ],
    [
      "Dead letters",
      letters ? `${countText(letters.total)}${letters.total_is_exact ? "" : "+"}` : "–",
      "",
      letters?.oldest_at ? `oldest ${durationText(now.value - Date.parse(letters.oldest_at))}` : "none",
      "dead-letters",
    ],
  ];
  return (
    <div class="figs">
      {all.map(([name, value, unit, below, to]) => (
        <a class="fig" key={name} href={href(to)}>
          <span class="k">{name}</span>
          <span class="v">
            {value} {unit && <small>{unit}</small>}
          </span>
          <span class="d" title={below}>
            {below}
          </span>
          {name === "On time" && (
            <Sparkline label="How often a limit fired or a job was late, over time" values={onTime.missed} />
          )}
        </a>
      ))}
    </div>
  );
}
