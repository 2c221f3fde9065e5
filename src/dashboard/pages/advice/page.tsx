import type { Advice } from "../../../ojs/replies/wire-replies.ts";
import { readAdvice } from "../../api/operations.ts";
import { useResource } from "../../api/resource.ts";
import { href, hrefWith, query } from "../../state/router.ts";
import { Badge } from "../../ui/badge.tsx";
import { Callout, Empty } from "../../ui/callout.tsx";
import { PageHead } from "../../ui/card.tsx";
import { countText, durationText, limitText, plural, shortId } from "../../ui/format.ts";
import { Shown } from "../../ui/shown.tsx";
import { type Column, NameLink, Table } from "../../ui/table.tsx";
import { Adaptive } from "./adaptive.tsx";
import { Scale } from "./scale.tsx";
import { WhatIf } from "./what-if.tsx";

const LOOKS = {
  raise: { mark: "discarded", tone: "force", word: "Raise it" },
  set: { mark: "grace", tone: "soft", word: "Set one" },
  lower: { mark: "grace", tone: "soft", word: "Lower it" },
  keep: { mark: "done", tone: "done", word: "It fits" },
  unknown: { mark: "pending", tone: "off", word: "Too few runs" },
} as const;
const ORDER = Object.keys(LOOKS);

/** Attempt limits beside what the runs of the last days took. */
export function Page() {
  const type = query.value.get("type");
  const advice = useResource("advice", (signal) => readAdvice({}, signal), { live: 30_000 });
  return (
    <>
      <PageHead
        title="Advice"
        below="The attempt limit of each type beside what its successful runs took. Pick one to try another limit on real history."
      />
      <Shown of={advice} what="The advice">
        {({ items }) => {
          const chosen = items.find((one) => one.type === type);
          return (
            <>
              {chosen && <WhatIf key={chosen.type} advice={chosen} />}
              {chosen && <Adaptive key={`${chosen.type} adaptive`} advice={chosen} />}
              <Holds items={items} />
              <List items={items} />
            </>
          );
        }}
      </Shown>
    </>
  );
}

function Holds({ items }: { readonly items: readonly Advice[] }) {
  const held = items.flatMap(({ type, holds }) => holds.map((hold) => ({ ...hold, type })));
  if (held.length === 0) return null;
  return (
    <div class="gap">
      <Callout tone="soft">
        <div class="grow">
          <p>
            <b>{plural(held.length, "job holds", "jobs hold")} a key without an end in sight:</b> no deadline
            and no heartbeat limit will end them.
          </p>
          {held.slice(0, 5).map(({ key, job, type, isWorkerGone }) => (
            <p key={`${key} ${job}`}>
              <code>{key}</code> by{" "}
              <a href={href(`jobs/${job}`)}>
                {type} {shortId(job)}
              </a>
              {isWorkerGone && ", whose worker is gone: cancel it"}
            </p>
          ))}
        </div>
      </Callout>
    </div>
  );
}

function List({ items }: { readonly items: readonly Advice[] }) {
  if (items.length === 0)
    return (
      <div class="tablewrap">
        <Empty icon="advice" title="No attempt has ended yet">
          <p>After a hundred runs of a type, its limit is held against what they took.</p>
        </Empty>
      </div>
    );
  const sorted = [...items].sort(
    (a, b) =>
      ORDER.indexOf(a.verdict) - ORDER.indexOf(b.verdict) || (b.run?.count ?? 0) - (a.run?.count ?? 0),
  );
  return (
    <Table
      label="Advice"
      class="advice"
      rows={sorted}
      columns={COLUMNS}
      idOf={({ type }) => type}
      hrefOf={({ type }) => hrefWith({ type, timeout: null })}
    />
  );
}

const span = (value: number | undefined) =>
  value === undefined ? <span class="t3">–</span> : durationText(value);

const COLUMNS: readonly Column<Advice>[] = [
  {
    id: "type",
    title: "Type",
    phone: "title",
    class: "c-wide",
    render: ({ type, text }) => (
      <span class="two">
        <NameLink href={hrefWith({ type, timeout: null })}>{type}</NameLink>
        <small>{text}</small>
      </span>
    ),
  },
  {
    id: "verdict",
    title: "Its limit",
    phone: "side",
    render: ({ verdict }) => <Badge look={LOOKS[verdict]} />,
  },
  {
    id: "limit",
    title: "attempt",
    isNumber: true,
    render: ({ timeout_ms, suggested_timeout_ms, verdict }) => (
      <span class="two">
        <code>{limitText(timeout_ms)}</code>
        {suggested_timeout_ms !== null && verdict !== "keep" && (
          <small>try {limitText(suggested_timeout_ms)}</small>
        )}
      </span>
    ),
  },
  {
    id: "scale",
    title: "Runs and limit",
    hide: "narrow",
    phone: "line",
    class: "c-scale",
    render: (advice) => advice.run && <Scale advice={advice} />,
  },
  {
    id: "p50",
    title: "p50",
    isNumber: true,
    phone: "hide",
    class: "nowrap",
    render: ({ run }) => span(run?.p50),
  },
  {
    id: "p95",
    title: "p95",
    isNumber: true,
    phone: "hide",
    class: "nowrap",
    render: ({ run }) => span(run?.p95),
  },
  { id: "p99", title: "p99", isNumber: true, class: "nowrap", render: ({ run }) => span(run?.p99) },
  {
    id: "runs",
    title: "Runs",
    isNumber: true,
    phone: "hide",
    render: ({ run }) => countText(run?.count ?? 0),
  },
  {
    id: "near",
    title: "Near misses",
    isNumber: true,
    hide: "narrow",
    phone: "hide",
    render: ({ near_misses }) => countText(near_misses),
  },
];
