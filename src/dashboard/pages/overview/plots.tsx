import { useEffect, useMemo, useState } from "preact/hooks";
import { api } from "../../api/client.ts";
import { type Resource, useResource } from "../../api/resource.ts";
import type { Events, History } from "../../api/wire.ts";
import { now, serverNow } from "../../state/clock.ts";
import { figures, pulse } from "../../state/live.ts";
import { LimitLetter, type LimitName } from "../../ui/badge.tsx";
import { countText, durationText, plural, rateText } from "../../ui/format.ts";
import { fromFirstJob } from "../../ui/history.ts";
import { Plot } from "../../ui/plot.tsx";
import { Bars } from "../../ui/sparkline.tsx";
import { RANGES, type Range } from "./ranges.ts";

/** What jobs did over time. The stretch that is still being counted is left out of rates: it would look like a drop. */
export function Plots({ history, range }: { readonly history: Resource<History>; readonly range: Range }) {
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
        lines={[
          { name: "p50", values: series.run50, latest: shownSpan(lastOf(series.run50)) },
          { name: "p99", values: series.run99, latest: shownSpan(lastOf(series.run99)) },
        ]}
        format={durationText}
        of="durations"
        empty={`No attempt ended in the last ${says}.`}
        isStale={isStale}
      />
      <Plot
        title="Wait before the start"
        times={times}
        lines={[
          { name: "p50", values: series.wait50, latest: shownSpan(lastOf(series.wait50)) },
          { name: "p99", values: series.wait99, latest: shownSpan(lastOf(series.wait99)) },
        ]}
        format={durationText}
        of="durations"
        empty={`No job waited in the last ${says}.`}
        isStale={isStale}
      />
      <WaitingNow />
      <Plot
        title="Failed attempts"
        value={countText(series.failed.reduce((sum: number, value) => sum + (value ?? 0), 0))}
        unit={`in the last ${says}`}
        times={times}
        lines={[{ name: "failed", values: series.failed }]}
        format={countText}
        of="counts"
        empty={`No attempt failed in the last ${says}.`}
        isStale={isStale}
      />
      <Timeouts />
    </div>
  );
}

const shownSpan = (span: number | null | undefined): string =>
  typeof span === "number" ? durationText(span) : "–";

const lastOf = (values: readonly (number | null)[]): number | null | undefined =>
  values.filter((value) => value !== null).at(-1);

function seriesOf(data: History["data"]) {
  const whole = data.slice(0, -1);
  return {
    times: whole.map(({ timestamp }) => Date.parse(timestamp)),
    ended: whole.map(({ processed, span_ms }) => (processed / Math.max(1, span_ms)) * 1_000),
    failed: whole.map(({ failed }) => failed),
    run50: whole.map(({ latency_p50_ms }) => latency_p50_ms ?? null),
    run99: whole.map(({ latency_p99_ms }) => latency_p99_ms ?? null),
    wait50: whole.map(({ wait_p50_ms }) => wait_p50_ms ?? null),
    wait99: whole.map(({ wait_p99_ms }) => wait_p99_ms ?? null),
  };
}

const MOST_SAMPLES = 600;

/** How many wait, since this page was opened: the server keeps no history of it. */
function WaitingNow() {
  const [samples, setSamples] = useState<readonly (readonly [at: number, count: number])[]>([]);
  const beat = pulse.value;
  // A sample with every pulse.
  useEffect(() => {
    const said = figures.peek();
    if (!said) return;
    const count = said.queues.reduce((sum, queue) => sum + Number(queue.available ?? 0), 0);
    setSamples((before) => [...before, [serverNow(), count] as const].slice(-MOST_SAMPLES));
  }, [beat]);
  const values = samples.map(([, count]) => count);
  // A range to grow into, so that the first samples do not jump about.
  const from = (samples[0]?.[0] ?? 0) - 5 * 60_000;
  return (
    <Plot
      title="Waiting"
      value={countText(values.at(-1) ?? 0)}
      unit="since you opened this page"
      times={[from, ...samples.map(([at]) => at)]}
      lines={[{ name: "waiting", values: [null, ...values] }]}
      format={countText}
      of="counts"
      empty="No job waits."
    />
  );
}

const KINDS: readonly (readonly [limit: LimitName, name: string, type: string])[] = [
  ["wait", "wait", "job.expired"],
  ["attempt", "attempt", "job.timeout"],
  ["total", "total", "job.total_timeout"],
  ["heartbeat", "heartbeat", "job.stalled"],
];
const HOUR = 3_600_000;
const SLOTS = 30;

/** Every firing of the last hour, by the limit that fired. */
function Timeouts() {
  const types = KINDS.map(([, , type]) => type).join(",");
  const events = useResource(
    "overview timeouts",
    (signal) => api.get<Events>("/events", { types, limit: 500 }, signal),
    {
      live: 5_000,
    },
  );
  const until = now.value;
  const recent = (events.data?.events ?? []).filter(({ time }) => until - Date.parse(time) < HOUR);
  const slotsOf = (of: (event: Events["events"][number]) => boolean) => {
    const slots = new Array<number>(SLOTS).fill(0);
    for (const event of recent.filter(of)) {
      const index = SLOTS - 1 - Math.floor(((until - Date.parse(event.time)) / HOUR) * SLOTS);
      if (index >= 0 && index < SLOTS) slots[index] = (slots[index] ?? 0) + 1;
    }
    return slots;
  };
  const sum = (slots: readonly number[]) => slots.reduce((all, one) => all + one, 0);
  const forced = slotsOf(({ data }) => (data.error as { forced?: boolean } | undefined)?.forced === true);
  return (
    <section class="plot" aria-label="Timeouts by kind">
      <header>
        <h3>Timeouts by kind</h3>
        <span class="v">{countText(recent.length)}</span>
        <span class="u">
          in the last hour{events.data?.events.length === 500 ? ", of the newest 500" : ""}
        </span>
      </header>
      <div class="kinds">
        {KINDS.map(([limit, name, type]) => {
          const slots = slotsOf((event) => event.type === type);
          return <Kind key={limit} limit={limit} name={name} slots={slots} count={sum(slots)} tone="" />;
        })}
        <Kind limit="grace" name="grace ran out" slots={forced} count={sum(forced)} tone="bad" />
      </div>
    </section>
  );
}

interface KindProps {
  readonly limit: LimitName;
  readonly name: string;
  readonly slots: readonly number[];
  readonly count: number;
  readonly tone: string;
}

function Kind({ limit, name, slots, count, tone }: KindProps) {
  return (
    <>
      <LimitLetter name={limit} as={tone === "bad" && count > 0 ? "fired" : undefined} />
      <span class="t2 nowrap">{name}</span>
      <Bars label={plural(count, "firing")} values={slots} tone={tone} />
      <b>{count}</b>
    </>
  );
}
