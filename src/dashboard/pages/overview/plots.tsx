import { useMemo } from "preact/hooks";
import type { History } from "../../../ojs/replies/history-replies.ts";
import type { Stats } from "../../../ojs/replies/wire-replies.ts";
import type { Resource } from "../../api/resource.ts";
import { type Sample, samples } from "../../state/live.ts";
import { href } from "../../state/router.ts";
import { LimitLetter } from "../../ui/badge.tsx";
import { countText, durationText, plural, rateText } from "../../ui/format.ts";
import { fromFirstJob } from "../../ui/history.ts";
import type { LimitName } from "../../ui/look.ts";
import { Plot } from "../../ui/plot.tsx";
import { Bars } from "../../ui/sparkline.tsx";
import { firedOf } from "./on-time.ts";
import { RANGES, type Range } from "./ranges.ts";

interface PlotsProps {
  readonly history: Resource<History>;
  readonly range: Range;
  readonly stats: Stats;
}

/** What jobs did over time. The stretch that is still being counted is left out of rates: it would look like a drop. */
export function Plots({ history, range, stats }: PlotsProps) {
  const data = history.data?.data;
  const series = useMemo(() => seriesOf(fromFirstJob(data ?? [])), [data]);
  const { says } = RANGES[range];
  const isStale = history.error !== undefined;
  const { times } = series;
  return (
    <div class="plots">
      <Plot
        title="Throughput"
        value={rateText(lastOf(series.ended) ?? 0)}
        unit="ended /s"
        times={times}
        lines={[{ name: "ended", values: series.ended }]}
        format={rateText}
        empty={`No job ended in the last ${says}.`}
        isStale={isStale}
      />
      <Plot
        title="Run time"
        times={times}
        lines={[spanLine("p50", series.run50), spanLine("p95", series.run95), spanLine("p99", series.run99)]}
        format={durationText}
        of="durations"
        empty={`No attempt ended in the last ${says}.`}
        isStale={isStale}
      />
      <Plot
        title="Wait before the start"
        times={times}
        lines={[spanLine("p50", series.wait50), spanLine("p99", series.wait99)]}
        format={durationText}
        of="durations"
        empty={`No job waited in the last ${says}.`}
        isStale={isStale}
      />
      <WaitingNow points={fromFirstJob(data ?? [])} />
      <NearMisses series={series} says={says} isStale={isStale} />
      <Plot
        title="Failed attempts"
        value={countText(sumOf(series.failed))}
        unit={`in the last ${says}`}
        times={times}
        lines={[{ name: "failed", values: series.failed }]}
        format={countText}
        of="counts"
        empty={`No attempt failed in the last ${says}.`}
        isStale={isStale}
      />
      <Timeouts points={data ?? []} says={says} />
      <Lateness of={stats.deadline_lateness} />
    </div>
  );
}

interface NearMissesProps {
  readonly series: ReturnType<typeof seriesOf>;
  readonly says: string;
  readonly isStale: boolean;
}

function NearMisses({ series, says, isStale }: NearMissesProps) {
  return (
    <Plot
      title="Near misses"
      times={series.times}
      lines={[
        { name: "over 80 %", values: series.near, latest: countText(sumOf(series.near)) },
        { name: "late", values: series.late, latest: countText(sumOf(series.late)) },
      ]}
      format={countText}
      of="counts"
      empty={`No job came near a limit in the last ${says}.`}
      isStale={isStale}
    />
  );
}

const shownSpan = (span: number | null | undefined): string =>
  typeof span === "number" ? durationText(span) : "–";

const spanLine = (name: string, values: readonly (number | null)[]) => ({
  name,
  values,
  latest: shownSpan(lastOf(values)),
});

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

const lastOf = (values: readonly (number | null)[]): number | null | undefined =>
  values.filter((value) => value !== null).at(-1);

function seriesOf(data: History["data"]) {
  const whole = data.slice(0, -1);
  return {
    times: whole.map(({ timestamp }) => Date.parse(timestamp)),
    ended: whole.map(({ processed, span_ms }) => (processed / Math.max(1, span_ms)) * 1_000),
    near: whole.map(({ near_misses }) => near_misses),
    late: whole.map(({ late }) => late),
    failed: whole.map(({ failed }) => failed),
    run50: whole.map(({ latency_p50_ms }) => latency_p50_ms ?? null),
    run95: whole.map(({ latency_p95_ms }) => latency_p95_ms ?? null),
    run99: whole.map(({ latency_p99_ms }) => latency_p99_ms ?? null),
    wait50: whole.map(({ wait_p50_ms }) => wait_p50_ms ?? null),
    wait99: whole.map(({ wait_p99_ms }) => wait_p99_ms ?? null),
  };
}

/** How many wait and the oldest of them: what the server noted once a minute, then what this tab hears every 3 s. */
function WaitingNow({ points }: { readonly points: History["data"] }) {
  const heard = samples.value;
  const line = useMemo(() => waitLine(points, heard), [points, heard]);
  const last = heard.at(-1);
  return (
    <>
      <Plot
        title="Waiting"
        value={countText(last?.waiting ?? 0)}
        unit="now"
        times={line.times}
        lines={[{ name: "waiting", values: line.waiting }]}
        format={countText}
        of="counts"
        empty="No job waits."
      />
      <Plot
        title="Oldest wait"
        value={shownSpan(last?.oldestWait)}
        unit="now"
        times={line.times}
        lines={[{ name: "oldest", values: line.oldest }]}
        format={durationText}
        of="durations"
        empty="No job waits."
      />
    </>
  );
}

/** A minute's figure stands where the minute ends, since it is the highest of the whole minute. */
function waitLine(points: History["data"], heard: readonly Sample[]) {
  const from = heard[0]?.at ?? Number.POSITIVE_INFINITY;
  const known = points
    .map((point) => ({ ...point, at: Date.parse(point.timestamp) + point.span_ms }))
    .filter(({ at }) => at < from);
  // A range to grow into, so that the first samples do not jump about.
  const start = known.length === 0 ? [(heard[0]?.at ?? 0) - 5 * 60_000] : [];
  const empty = start.map(() => null);
  return {
    times: [...start, ...known.map(({ at }) => at), ...heard.map(({ at }) => at)],
    waiting: [
      ...empty,
      ...known.map(({ waiting }) => waiting ?? null),
      ...heard.map(({ waiting }) => waiting),
    ],
    oldest: [
      ...empty,
      ...known.map(({ oldest_wait_ms }) => oldest_wait_ms ?? null),
      ...heard.map(({ oldestWait }) => oldestWait ?? 0),
    ],
  };
}

/** How late deadlines fired in this process since it started. */
function Lateness({ of }: { readonly of: Stats["deadline_lateness"] }) {
  const { bounds_ms, counts, total } = of;
  const within = (bound: number) =>
    counts.slice(0, bounds_ms.filter((each) => each <= bound).length).reduce((sum, one) => sum + one, 0);
  const rows = [10, 100, 1_000].filter((bound) => bounds_ms.includes(bound));
  return (
    <section class="plot" aria-label="Lateness of deadlines">
      <header>
        <h3>Lateness of deadlines</h3>
        <span class="v">{countText(total)}</span>
        <span class="u">fired here</span>
      </header>
      {total === 0 ? (
        <p class="plot-empty">No deadline has fired since the server started.</p>
      ) : (
        <dl class="shares">
          {rows.map((bound) => (
            <Share key={bound} name={`within ${durationText(bound)}`} count={within(bound)} of={total} />
          ))}
          <Share
            name={`later than ${durationText(rows.at(-1) ?? 0)}`}
            count={total - within(rows.at(-1) ?? 0)}
            of={total}
            isBad
          />
        </dl>
      )}
    </section>
  );
}

interface ShareProps {
  readonly name: string;
  readonly count: number;
  readonly of: number;
  readonly isBad?: boolean;
}

function Share({ name, count, of, isBad = false }: ShareProps) {
  const share = (count / of) * 100;
  return (
    <>
      <dt class="t2 nowrap">{name}</dt>
      <dd>
        <svg class="share" aria-hidden="true">
          <rect class="all" x="0" y="0" width="100%" height="100%" rx="3" />
          <rect class={isBad ? "part bad" : "part"} x="0" y="0" width={`${share}%`} height="100%" rx="3" />
        </svg>
        <b>{share > 0 && share < 1 ? "< 1" : Math.floor(share)} %</b>
      </dd>
    </>
  );
}

/** The limits, as the server counts them and as the list of firings filters by them. */
const KINDS: readonly (readonly [limit: LimitName, counted: string])[] = [
  ["wait", "enqueue_ttl"],
  ["attempt", "execution"],
  ["total", "total"],
  ["heartbeat", "stalled"],
];
const SLOTS = 30;

/** Every firing in the range, by the limit that fired. */
function Timeouts({ points, says }: { readonly points: History["data"]; readonly says: string }) {
  return (
    <section class="plot" aria-label="Timeouts by kind">
      <header>
        <h3>Timeouts by kind</h3>
        <span class="v">{countText(sumOf(points.map(firedOf)))}</span>
        <span class="u">in the last {says}</span>
      </header>
      <div class="kinds">
        {KINDS.map(([limit, counted]) => {
          const slots = slotsOf(points.map(({ timeouts }) => timeouts[counted] ?? 0));
          return <Kind key={limit} limit={limit} counted={counted} slots={slots} />;
        })}
      </div>
    </section>
  );
}

/** As many bars as there is room for. */
function slotsOf(counts: readonly number[]): number[] {
  const slots = new Array<number>(SLOTS).fill(0);
  counts.forEach((count, index) => {
    const slot = Math.floor((index / counts.length) * SLOTS);
    slots[slot] = (slots[slot] ?? 0) + count;
  });
  return slots;
}

interface KindProps {
  readonly limit: LimitName;
  readonly counted: string;
  readonly slots: readonly number[];
}

function Kind({ limit, counted, slots }: KindProps) {
  const count = sumOf(slots);
  return (
    <>
      <LimitLetter name={limit} as={count > 0 ? "fired" : undefined} />
      <a class="t2 nowrap" href={href("jobs", { tab: "timeouts", kind: counted })}>
        {limit}
      </a>
      <Bars label={plural(count, "firing")} values={slots} />
      <b>{countText(count)}</b>
    </>
  );
}
