import { useEffect, useRef } from "preact/hooks";
import type { Job } from "../../../ojs/replies/wire-replies.ts";
import { api, part } from "../../api/client.ts";
import { type Resource, useResource } from "../../api/resource.ts";
import { href, hrefWith } from "../../state/router.ts";
import { LinkButton } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import type { MarkName } from "../../ui/drawings.ts";
import { Mark } from "../../ui/icon.tsx";
import { type Advised, placeOf, wordsOf } from "./action-words.ts";

/** What `GET /jobs/:id/why` says. */
interface WhyReply {
  readonly reasons: readonly {
    readonly code: string;
    readonly sentence: string;
    readonly since: string | null;
    readonly until: string | null;
    readonly who: { readonly kind: string; readonly id: string } | null;
    readonly action: Advised;
  }[];
}

const TITLES: Readonly<Partial<Record<Job["state"], string>>> = {
  active: "Why is it still running?",
  completed: "How did it end?",
  discarded: "Why did it end?",
  cancelled: "Why did it end?",
};

/** What is as it should be is no warning. */
const LOOKS: Readonly<Partial<Record<Job["state"], { readonly mark: MarkName; readonly tone: string }>>> = {
  completed: { mark: "done", tone: "done" },
  scheduled: { mark: "info", tone: "wait" },
};

/** Where nothing needs to be done, there is nothing to warn of. */
const CALM = { mark: "info", tone: "wait" } as const;

export const useWhy = (id: string): Resource<WhyReply> =>
  useResource(`why ${id}`, (signal) => api.get<WhyReply>(`/jobs/${part(id)}/why`, {}, signal), {
    live: 5_000,
  });

/** The engine's own answer in sentences: the first reason is the one to act on, so its action stands below. */
export function Why({ reply, job }: { readonly reply: Resource<WhyReply>; readonly job: Job }) {
  // What it says is about this state and this attempt; after another one it would be wrong until the next pulse.
  const stage = `${job.state} ${job.attempt}`;
  const asked = useRef(stage);
  useEffect(() => {
    if (asked.current !== stage) reply.reload();
    asked.current = stage;
  }, [stage, reply.reload]);
  const reasons = reply.data?.reasons ?? [];
  const [first] = reasons;
  if (!first) return null;
  const isCalm = first.action.name === "wait";
  const { mark, tone } = LOOKS[job.state] ?? (isCalm ? CALM : { mark: "grace", tone: "soft" });
  return (
    <Card title={TITLES[job.state] ?? "Why is it not running?"}>
      <ul class="why">
        {reasons.map(({ code, sentence, who }, index) => (
          <li key={`${index} ${code}`} class={index === 0 ? `is-${tone}` : "is-wait"}>
            <Mark name={index === 0 ? mark : "info"} />
            <span class="anywhere">
              {wordsOf({ text: sentence })} {who && <Who kind={who.kind} id={who.id} job={job.id} />}
            </span>
          </li>
        ))}
      </ul>
      <Advice of={first.action} />
    </Card>
  );
}

/** What helps, and a link to where it is done. */
function Advice({ of }: { readonly of: Advised }) {
  const place = placeOf(of);
  return (
    <p class="do">
      <span>{wordsOf(of)}</span>
      {place && (
        <LinkButton small href={place.form ? hrefWith({ form: place.form }) : href(place.path ?? "")}>
          {place.label}
        </LinkButton>
      )}
    </p>
  );
}

const PAGES: Readonly<Record<string, (id: string) => string>> = {
  job: (id) => `jobs/${part(id)}`,
  queue: (id) => `jobs?queue=${part(id)}`,
  worker: () => "workers",
  limit: () => "limits",
  workflow: () => "workflows",
};

/** A link to what the reason names, unless that is this job itself. */
function Who({ kind, id, job }: { readonly kind: string; readonly id: string; readonly job: string }) {
  const page = PAGES[kind];
  if (!page || id === job) return null;
  return <a href={href(page(id))}>{kind === "job" ? "Show that job" : `Show the ${kind}`}</a>;
}
