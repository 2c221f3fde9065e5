import { useState } from "preact/hooks";
import { EVENT_GROUPS, EVENT_NAMES } from "../../../ojs/event-names.ts";
import type { WireEvent } from "../../../ojs/replies/wire-replies.ts";
import { useKeys } from "../../state/keys.ts";
import { href, hrefWith, query } from "../../state/router.ts";
import { Button } from "../../ui/button.tsx";
import { Empty, Failure, Skeleton } from "../../ui/callout.tsx";
import { PageHead, Summed } from "../../ui/card.tsx";
import { FilterBar } from "../../ui/filter-bar.tsx";
import { clockText, countText, exactText, plural, shortId } from "../../ui/format.ts";
import { JsonTree } from "../../ui/json-tree.tsx";
import { Commands } from "../../ui/shown.tsx";
import { toneOf } from "./event-tone.ts";
import { wordOf } from "./event-word.ts";
import { type Line, MOST_LINES, type Tail, useTail } from "./tail.ts";

/** What happens, as it happens. */
export function Page() {
  const [isHeld, setHeld] = useState(false);
  const filter = {
    types: query.value.get("types"),
    queue: query.value.get("queue"),
    job: query.value.get("job"),
  };
  const tail = useTail(filter, isHeld);
  useKeys([{ keys: "p", says: "Hold or release the tail", run: () => setHeld(!isHeld) }]);
  return (
    <>
      <PageHead title="Events" below={<Summed>{stateOf(tail, isHeld)}</Summed>}>
        <Button icon={isHeld ? "play" : "pause"} hint="p" onClick={() => setHeld(!isHeld)}>
          {isHeld ? `Go on${tail.held > 0 ? ` with ${countText(tail.held)}` : ""}` : "Hold"}
        </Button>
        <Button onClick={tail.clear}>Clear</Button>
      </PageHead>
      <FilterBar
        filters={[
          {
            name: "types",
            label: "type",
            options: [...EVENT_GROUPS, ...EVENT_NAMES].map((one) => [one, one]),
            isFree: true,
            placeholder: "job.timeout,job.stuck",
          },
          { name: "queue", label: "queue", isFree: true },
          { name: "job", label: "job", isFree: true, placeholder: "the id of a job" },
        ]}
      />
      <Lines tail={tail} isFiltered={Object.values(filter).some((value) => value !== null)} />
    </>
  );
}

function stateOf({ isOpen, isLoading, lines, dropped }: Tail, isHeld: boolean): string {
  if (isLoading) return "Reading what happened last.";
  const kept = dropped > 0 ? ` The newest ${MOST_LINES} are kept.` : "";
  const shown = `${plural(lines.length, "event")} shown.${kept}`;
  if (!isOpen) return `Not connected; it tries again by itself. ${shown}`;
  return `${isHeld ? "Held: new events wait." : "Live: new events come in at the top."} ${shown}`;
}

function Lines({ tail, isFiltered }: { readonly tail: Tail; readonly isFiltered: boolean }) {
  if (tail.error) return <Failure what="What happened" error={tail.error} />;
  if (tail.isLoading)
    return (
      <div class="tablewrap">
        <Skeleton />
      </div>
    );
  if (tail.lines.length === 0)
    return (
      <div class="tablewrap">
        <Empty icon="events" title={isFiltered ? "Nothing of this kind yet" : "Nothing has happened yet"}>
          {!isFiltered && (
            <>
              <p>Events are recorded while a server runs, or with:</p>
              <Commands lines={['await openEngine({ store, events: "durable" });']} />
            </>
          )}
        </Empty>
      </div>
    );
  return (
    <ol class="tail card" aria-label="Events, the newest first">
      {[...tail.lines].reverse().map((line) => (
        <li key={line.kind === "event" ? line.event.id : line.id}>
          <OneLine line={line} />
        </li>
      ))}
    </ol>
  );
}

function OneLine({ line }: { readonly line: Line }) {
  if (line.kind === "gap")
    return (
      <p class="gapline">
        connection lost {clockText(line.lostAt)}, resumed {clockText(line.backAt)}
      </p>
    );
  return <OneEvent event={line.event} />;
}

function OneEvent({ event }: { readonly event: WireEvent }) {
  const [isOpen, setOpen] = useState(false);
  const { id, type, time, subject, data } = event;
  const at = Date.parse(time);
  const isJob = type.startsWith("job.");
  const queue = typeof data.queue === "string" ? data.queue : undefined;
  return (
    <details class="evt" onToggle={(toggled) => setOpen(toggled.currentTarget.open)}>
      <summary>
        <time dateTime={time} title={exactText(at)}>
          {clockText(at)}
        </time>
        <span class={`tag is-${toneOf(type)}`}>{type}</span>
        <span class="clip what">{wordOf(event)}</span>
        <span class="t3 clip hide-s">{queue}</span>
        <span class="id hide-s">{subject && (isJob ? shortId(subject) : subject.slice(0, 40))}</span>
      </summary>
      {isOpen && (
        <div class="in">
          <p class="rowf wrap small">
            {isJob && subject && <a href={href(`jobs/${subject}`)}>Open the job</a>}
            {isJob && subject && <a href={hrefWith({ job: subject })}>Only this job</a>}
            <a href={hrefWith({ types: type })}>Only {type}</a>
            {queue && <a href={hrefWith({ queue })}>Only queue {queue}</a>}
            <span class="t3">{id}</span>
          </p>
          <JsonTree value={data} what="the event" />
        </div>
      )}
    </details>
  );
}
