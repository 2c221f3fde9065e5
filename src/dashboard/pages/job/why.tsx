import { api, part } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import type { Job } from "../../api/wire.ts";
import { Card } from "../../ui/card.tsx";
import { Mark } from "../../ui/icon.tsx";

/** What `GET /jobs/:id/why` says, as far as it is shown here. */
interface WhyReply {
  readonly title?: string;
  readonly text?: string;
  readonly sentences?: readonly (string | { readonly text: string; readonly tone?: string })[];
  readonly reasons?: readonly (string | { readonly text: string; readonly tone?: string })[];
  readonly advice?: string | { readonly text: string } | null;
  readonly action?: string | { readonly text: string } | null;
}

const TITLES: Readonly<Partial<Record<Job["state"], string>>> = {
  active: "Why is it still running?",
  completed: "How did it end?",
  discarded: "Why did it end?",
  cancelled: "Why did it end?",
};

const textOf = (said: string | { readonly text: string }): string =>
  typeof said === "string" ? said : said.text;

/** The engine's own answer in sentences. A server that does not have it yet shows nothing here. */
export function Why({ id, job }: { readonly id: string; readonly job: Job }) {
  const reply = useResource(
    `why ${id}`,
    (signal) => api.get<{ readonly why?: WhyReply } & WhyReply>(`/jobs/${part(id)}/why`, {}, signal),
    {
      live: 5_000,
    },
  );
  const why = reply.data?.why ?? reply.data;
  const sentences = why?.sentences ?? why?.reasons ?? (why?.text ? [why.text] : []);
  if (!why || sentences.length === 0) return null;
  const advice = why.advice ?? why.action;
  return (
    <Card title={why.title ?? TITLES[job.state] ?? "Why is it not running?"}>
      <ul class="why">
        {sentences.map((said) => {
          const tone = typeof said === "string" ? undefined : said.tone;
          return (
            <li
              key={textOf(said)}
              class={tone === "bad" ? "is-force" : tone === "warn" ? "is-soft" : "is-wait"}
            >
              <Mark name={tone === "bad" ? "discarded" : tone === "warn" ? "grace" : "info"} />
              <span class="anywhere">{textOf(said)}</span>
            </li>
          );
        })}
      </ul>
      {advice && <p class="do">{textOf(advice)}</p>}
    </Card>
  );
}
