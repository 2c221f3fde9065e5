import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { BulkTarget, DeadLetterStats, Job, Page as PageOf } from "../../../ojs/replies/wire-replies.ts";
import type { BulkAction } from "../../api/jobs.ts";
import { readDeadLetterStats, readDeadLetters } from "../../api/operations.ts";
import { areRead, type Resource, useOnce, useResource } from "../../api/resource.ts";
import { href, hrefWith, query } from "../../state/router.ts";
import { whyNot } from "../../state/session.ts";
import { BulkBar } from "../../ui/bulk-bar.tsx";
import { Button } from "../../ui/button.tsx";
import { Empty } from "../../ui/callout.tsx";
import { PageHead, Summed } from "../../ui/card.tsx";
import { FilterBar } from "../../ui/filter-bar.tsx";
import { countText, plural, shortId } from "../../ui/format.ts";
import { Meter } from "../../ui/meter.tsx";
import { Pager } from "../../ui/pager.tsx";
import { Commands, Shown } from "../../ui/shown.tsx";
import { ACTIONS_COLUMN, type Column, NAME_COLUMN, NameLink, Table } from "../../ui/table.tsx";
import { Time } from "../../ui/time.tsx";
import { BulkForm } from "../jobs/bulk-form.tsx";

type Stats = DeadLetterStats & { readonly by_queue: Readonly<Record<string, number>> };
type Asked = { readonly action: BulkAction; readonly target: BulkTarget };

/** Jobs that failed for good and wait for somebody. */
export function Page() {
  const [asked, setAsked] = useState<Asked | null>(null);
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const filter = { queue: query.value.get("queue"), type: query.value.get("type") };
  const cursor = query.value.get("cursor");
  const letters = useResource(
    `dead letters ${JSON.stringify(filter)} ${cursor}`,
    (signal) => readDeadLetters(filter, cursor, signal),
    { live: cursor === null && ids.size === 0 ? 6_000 : false },
  );
  const stats = useResource("dead letter stats", readDeadLetterStats, { live: 6_000 });
  const isReady = useOnce(areRead(letters, stats));
  const all = targetOf(filter);
  const isFiltered = filter.queue !== null || filter.type !== null;
  const ask = (action: BulkAction, target: BulkTarget) => setAsked({ action, target });
  const none = letters.data?.items.length === 0 ? "There are none." : undefined;
  return (
    <>
      <PageHead
        title="Dead letters"
        below={<Summed>{stats.data && stats.data.total > 0 && <Summary stats={stats.data} />}</Summed>}
      >
        <Button whyNot={whyNot("operate") ?? none} onClick={() => ask("retry", all)}>
          {isFiltered ? "Retry all that fit…" : "Retry all…"}
        </Button>
        <Button kind="danger" whyNot={whyNot("operate") ?? none} onClick={() => ask("delete", all)}>
          {isFiltered ? "Delete all that fit…" : "Delete all…"}
        </Button>
      </PageHead>
      {isReady && stats.data && stats.data.total > 0 && <Facets stats={stats.data} onAct={ask} />}
      {isReady && (
        <FilterBar
          filters={[
            { name: "queue", label: "queue", options: optionsOf(stats.data?.by_queue), isFree: true },
            { name: "type", label: "type", options: optionsOf(stats.data?.by_type), isFree: true },
          ]}
        />
      )}
      <List
        letters={isReady ? letters : { ...letters, data: undefined }}
        ids={ids}
        setIds={setIds}
        onAct={ask}
        isFiltered={isFiltered}
      />
      {asked && (
        <BulkForm
          {...asked}
          onClose={() => setAsked(null)}
          onDone={() => {
            setAsked(null);
            setIds(new Set());
            letters.reload();
            stats.reload();
          }}
        />
      )}
    </>
  );
}

function targetOf(filter: { readonly queue: string | null; readonly type: string | null }): BulkTarget {
  const { queue, type } = filter;
  return { filter: { dead_letter: true, ...(queue !== null && { queue }), ...(type !== null && { type }) } };
}

const optionsOf = (counts: Readonly<Record<string, number>> | undefined) =>
  Object.keys(counts ?? {}).map((name) => [name, name] as const);

function Summary({ stats: { total, total_is_exact, oldest_at, newest_at } }: { readonly stats: Stats }) {
  return (
    <>
      {total_is_exact ? "" : "More than "}
      {plural(total, "job")} failed for good. The oldest is from <Time at={oldest_at} as="when" />, the newest
      came <Time at={newest_at} />.
    </>
  );
}

const MOST = 5;

/** What they have in common: most of them usually share one cause, and one action. */
function Facets({
  stats,
  onAct,
}: {
  readonly stats: Stats;
  readonly onAct: (action: BulkAction, target: BulkTarget) => void;
}) {
  const { by_type, by_error_type, by_queue, sampled, total } = stats;
  return (
    <section class="facets" aria-label="What they have in common">
      <Facet title="By error" counts={by_error_type} of={sampled}>
        {(error) => (
          <Button
            small
            kind="ghost"
            whyNot={whyNot("operate")}
            label={`Retry all with the error ${error}`}
            onClick={() => onAct("retry", { filter: { dead_letter: true, error_type: error } })}
          >
            Retry…
          </Button>
        )}
      </Facet>
      <Facet
        title="By type"
        counts={by_type}
        of={sampled}
        hrefOf={(type) => hrefWith({ type, cursor: null })}
      />
      <Facet
        title="By queue"
        counts={by_queue}
        of={sampled}
        hrefOf={(queue) => hrefWith({ queue, cursor: null })}
      />
      {sampled < total && <p class="t3 small">Counted over the newest {countText(sampled)}.</p>}
    </section>
  );
}

function Facet({
  title,
  counts,
  of,
  hrefOf,
  children,
}: {
  readonly title: string;
  readonly counts: Readonly<Record<string, number>>;
  readonly of: number;
  readonly hrefOf?: (name: string) => string;
  readonly children?: (name: string) => ComponentChildren;
}) {
  const sorted = Object.entries(counts).sort(([, a], [, b]) => b - a);
  return (
    <div class="card facet">
      <h2>{title}</h2>
      <ul>
        {sorted.slice(0, MOST).map(([name, count]) => (
          <li key={name}>
            {hrefOf ? (
              <a class="clip" href={hrefOf(name)} title={name}>
                {name}
              </a>
            ) : (
              <span class="clip" title={name}>
                {name}
              </span>
            )}
            <Meter share={count / Math.max(1, of)} label={plural(count, "dead letter")} tone="bad" />
            <b>{countText(count)}</b>
            {children?.(name)}
          </li>
        ))}
        {sorted.length > MOST && <li class="t3">{sorted.length - MOST} more</li>}
      </ul>
    </div>
  );
}

interface ListProps {
  readonly letters: Resource<PageOf<Job>>;
  readonly ids: ReadonlySet<string>;
  readonly setIds: (ids: ReadonlySet<string>) => void;
  readonly onAct: (action: BulkAction, target: BulkTarget) => void;
  readonly isFiltered: boolean;
}

function List({ letters, ids, setIds, onAct, isFiltered }: ListProps) {
  return (
    <Shown of={letters} what="The list">
      {({ items, pagination }) =>
        items.length === 0 ? (
          <div class="tablewrap">
            {isFiltered ? (
              <Empty icon="dead" title="No dead letter fits these filters" />
            ) : (
              <Empty icon="dead" title="No dead letters">
                <p>A job that is to wait here when it fails for good says so:</p>
                <Commands
                  lines={['defineJob({ type: "card.charge", retry: { onExhausted: "dead-letter" } });']}
                />
              </Empty>
            )}
          </div>
        ) : (
          <>
            <Table
              label="Dead letters"
              rows={items}
              columns={columnsOf(onAct)}
              idOf={({ id }) => id}
              hrefOf={({ id }) => href(`jobs/${id}`)}
              selection={{ ids, set: setIds }}
            />
            <Pager
              shown={items.length}
              total={pagination.total}
              isExact={pagination.total_is_exact}
              next={pagination.next_cursor}
              older="Older"
            />
            <BulkBar count={ids.size} onClear={() => setIds(new Set())}>
              <Button
                small
                kind="primary"
                whyNot={whyNot("operate")}
                onClick={() => onAct("retry", { job_ids: [...ids] })}
              >
                Retry…
              </Button>
              <Button
                small
                kind="danger"
                whyNot={whyNot("operate")}
                onClick={() => onAct("delete", { job_ids: [...ids] })}
              >
                Delete…
              </Button>
            </BulkBar>
          </>
        )
      }
    </Shown>
  );
}

function columnsOf(onAct: (action: BulkAction, target: BulkTarget) => void): Column<Job>[] {
  return [
    {
      id: "job",
      title: "Job",
      ...NAME_COLUMN,
      render: ({ id, type }) => (
        <span class="two">
          <NameLink href={href(`jobs/${id}`)}>{type}</NameLink>
          <span class="id">{shortId(id)}</span>
        </span>
      ),
    },
    {
      id: "queue",
      title: "Queue",
      phone: "hide",
      class: "c-queue",
      render: ({ queue }) => <span class="clip">{queue}</span>,
    },
    { id: "attempts", title: "Attempts", isNumber: true, phone: "hide", render: ({ attempt }) => attempt },
    {
      id: "error",
      title: "Last error",
      phone: "line",
      class: "c-wide",
      render: ({ error }) => (
        <span class="two">
          <span class="clip" title={error?.message}>
            {error?.message ?? "–"}
          </span>
          <small class="clip">
            {error?.cause ? `${error.type}, because ${error.cause.code ?? error.cause.message}` : error?.type}
          </small>
        </span>
      ),
    },
    {
      id: "died",
      title: "Failed",
      isNumber: true,
      phone: "side",
      class: "t2 nowrap",
      render: ({ discarded_at, completed_at }) => <Time at={discarded_at ?? completed_at} />,
    },
    ...actionColumns(onAct),
  ];
}

function actionColumns(onAct: (action: BulkAction, target: BulkTarget) => void): Column<Job>[] {
  return [
    {
      ...ACTIONS_COLUMN,
      render: ({ id, type }) => (
        <span class="rowf end">
          <Button
            small
            label={`Retry ${type}`}
            whyNot={whyNot("operate")}
            onClick={() => onAct("retry", { job_ids: [id] })}
          >
            Retry…
          </Button>
          <Button
            small
            kind="danger"
            label={`Delete ${type}`}
            whyNot={whyNot("operate")}
            onClick={() => onAct("delete", { job_ids: [id] })}
          >
            Delete…
          </Button>
        </span>
      ),
    },
  ];
}
