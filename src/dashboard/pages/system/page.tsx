import { useState } from "preact/hooks";
import type { Maintenance, ServerConfig } from "../../../ojs/replies/wire-replies.ts";
import {
  readAdvice,
  readConfig,
  readDoctor,
  readHealth,
  readMetrics,
  readPauseOfAll,
  readQueues,
  readWorkers,
  setPauseOfAll,
} from "../../api/operations.ts";
import { areRead, useResource } from "../../api/resource.ts";
import { clockOffset, now } from "../../state/clock.ts";
import { href } from "../../state/router.ts";
import { visit, whyNot } from "../../state/session.ts";
import { ActionForm } from "../../ui/action-form.tsx";
import { Button } from "../../ui/button.tsx";
import { Callout } from "../../ui/callout.tsx";
import { Card, Facts, PageHead } from "../../ui/card.tsx";
import { TextField } from "../../ui/fields.tsx";
import { countText, durationText, plural, readLimit } from "../../ui/format.ts";
import { Mark } from "../../ui/icon.tsx";
import { Shown } from "../../ui/shown.tsx";
import { Time } from "../../ui/time.tsx";
import type { FormEnd } from "../../ui/use-form.ts";
import { type Finding, findingsOf } from "./findings.ts";

/** What the page reads. */
function useInspected() {
  const config = useResource("config", readConfig, { live: 30_000 });
  const health = useResource("health", readHealth, { live: 6_000 });
  const maintenance = useResource("maintenance", readPauseOfAll, { live: 3_000 });
  const metrics = useResource("metrics", readMetrics, { live: 6_000 });
  const workers = useResource("system workers", readWorkers, { live: 6_000 });
  const queues = useResource("system queues", readQueues, { live: 6_000 });
  // Another role may not ask the doctor, and gets what this page can see itself.
  const isOperator = whyNot("operate") === undefined;
  const doctor = useResource(isOperator ? "doctor" : null, readDoctor, { live: 15_000 });
  const advice = useResource("system advice", (signal) => readAdvice({}, signal), { live: 60_000 });
  return { config, health, maintenance, metrics, workers, queues, doctor, advice };
}

/** The server, its store and its clock; and what is wrong with them. */
export function Page() {
  const { config, health, maintenance, metrics, workers, queues, doctor, advice } = useInspected();
  const [isAsked, setAsked] = useState(false);
  const session = visit.value.state === "known" ? visit.value.session : undefined;
  const isReady = areRead(config, health, maintenance, metrics, workers, queues, doctor, advice);
  const findings = findingsOf({
    session,
    doctor: doctor.data,
    config: config.data,
    health: health.data,
    maintenance: maintenance.data,
    workers: workers.data?.items ?? [],
    queues: queues.data?.items ?? [],
    advice: advice.data?.items ?? [],
    offset: clockOffset(),
  });
  const isOn = maintenance.data?.enabled === true;
  return (
    <>
      <PageHead title="System" below="The server that answers here, its store and its clock.">
        <Button
          kind={isOn ? "primary" : "plain"}
          icon={isOn ? "play" : "pause"}
          whyNot={whyNot("operate")}
          onClick={() => setAsked(true)}
        >
          {isOn ? "End the maintenance…" : "Begin maintenance…"}
        </Button>
      </PageHead>
      {isOn && maintenance.data && <MaintenanceNote maintenance={maintenance.data} />}
      {isReady && <Findings findings={findings} passed={doctor.data?.passed.map(({ text }) => text) ?? []} />}
      <Shown of={isReady ? config : { ...config, data: undefined }} what="How the server is set up">
        {(data) => (
          <div class="pair">
            <ServerCard config={data} role={session && `${session.name}, ${session.role}`} />
            <StoreCard
              config={data}
              latency={health.data?.backend.latency_ms}
              isUp={health.data?.status === "healthy"}
            />
          </div>
        )}
      </Shown>
      {isReady && (
        <Card title="Counted by this process" note="since it started">
          <Shown of={metrics} what="The counters" rows={3}>
            {(data) => <Counters of={data} />}
          </Shown>
        </Card>
      )}
      {isAsked && (
        <MaintenanceForm
          isOn={isOn}
          onClose={() => setAsked(false)}
          onDone={() => {
            setAsked(false);
            maintenance.reload();
          }}
        />
      )}
    </>
  );
}

interface FindingsProps {
  readonly findings: readonly Finding[];
  /** What the doctor checked and found in order. */
  readonly passed: readonly string[];
}

function Findings({ findings, passed }: FindingsProps) {
  return (
    <Card title="Findings" note={String(findings.length)}>
      {findings.length === 0 ? (
        <p class="calm">
          <Mark name="done" />
          Nothing is wrong with the store, the clock, the workers or the setup.
        </p>
      ) : (
        <ul class="attn">
          {findings.map(({ id, tone, title, text, to }) => (
            <li key={id} class={`is-${tone}`}>
              <Mark name={tone === "force" ? "discarded" : tone === "soft" ? "grace" : "info"} />
              <div class="what">
                <b>{title}</b>
                <p>{text}</p>
              </div>
              <span class="since" />
              {to && (
                <span class="acts">
                  <a class="btn small" href={href(to)}>
                    Show
                  </a>
                </span>
              )}
            </li>
          ))}
        </ul>
      )}
      {passed.length > 0 && (
        <details class="checks">
          <summary>{plural(passed.length, "check is", "checks are")} fine</summary>
          <ul>
            {passed.map((text) => (
              <li key={text}>
                <Mark name="done" /> {text}
              </li>
            ))}
          </ul>
        </details>
      )}
    </Card>
  );
}

function ServerCard({ config, role }: { readonly config: ServerConfig; readonly role: string | undefined }) {
  const { implementation, uptime_seconds, limits, authentication, events } = config;
  return (
    <Card title="Server">
      <div class="pad">
        <Facts
          of={[
            ["Version", `${implementation.name} ${implementation.version}`],
            ["Up for", durationText(uptime_seconds * 1_000)],
            ["Clock", <Clock key="clock" />],
            ["You are", role],
            ["Keys", authentication ? "asked for" : "not asked for"],
            ["Events", events.recorded ? "recorded" : "not recorded"],
            ["Takes", limitWords(limits)],
            [
              "Interface",
              <a key="api" href={href("openapi.json")}>
                openapi.json
              </a>,
            ],
          ]}
        />
      </div>
    </Card>
  );
}

/** What a request may be at most. */
const limitWords = (limits: Readonly<Record<string, number>> | undefined) =>
  limits?.body !== undefined &&
  `requests of up to ${Math.round(limits.body / 1_048_576)} MB, ${countText(limits.depth ?? 0)} levels deep, with ${countText(limits.keys ?? 0)} keys`;

/** Reads the clock once a second, so that the rest of the page need not. */
function Clock() {
  const offset = clockOffset();
  return (
    <>
      <Time at={now.value} as="clock" />;{" "}
      {Math.abs(offset) < 1_000
        ? "this browser agrees"
        : `this browser is ${durationText(offset)} ${offset > 0 ? "behind" : "ahead"}`}
    </>
  );
}

function StoreCard({
  config,
  latency,
  isUp,
}: {
  readonly config: ServerConfig;
  readonly latency: number | undefined;
  readonly isUp: boolean;
}) {
  // A capability without words here is a detail between the store and the engine.
  const abilities = Object.entries(config.store).flatMap(([name, value]) => {
    const label = ABILITIES[name];
    return label === undefined ? [] : [[label, WORDS[String(value)] ?? String(value)] as const];
  });
  return (
    <Card title="Store">
      <div class="pad wide-names">
        <Facts
          of={[
            ["Kind", config.backend],
            ["Answers", latency === undefined ? "–" : `${isUp ? "" : "no; "}${withinText(latency)}`],
            ...abilities,
          ]}
        />
      </div>
    </Card>
  );
}

const withinText = (latency: number) => (latency < 1 ? "in under 1 ms" : `in ${durationText(latency)}`);

/** What a store can do, in words. */
const ABILITIES: Readonly<Record<string, string>> = {
  durable: "Durable after",
  tx: "Your transactions",
  hints: "News of changes",
  homes: "Homes",
  atomic: "A commit spans",
  order: "Order holds in",
  unique: "A key is unique in",
};

const WORDS: Readonly<Record<string, string>> = {
  true: "joined",
  false: "not joined",
  ack: "each reply",
  interval: "an interval",
  none: "nothing: it is lost with the process",
  push: "sent at once",
  poll: "polled",
  store: "the whole store",
  home: "one home",
};

const SHOWN = [
  ["jobs_enqueued_total", "Enqueued"],
  ["jobs_completed_total", "Completed"],
  ["jobs_failed_total", "Attempts failed"],
  ["jobs_discarded_total", "Discarded"],
  ["jobs_cancelled_total", "Cancelled"],
  ["throughput_per_second", "Attempts /s"],
] as const;

function Counters({ of }: { readonly of: Readonly<Record<string, number>> }) {
  return (
    <dl class="figs flat">
      {SHOWN.map(([name, text]) => (
        <div class="fig" key={name}>
          <dt class="k">{text}</dt>
          <dd class="v">{name === "throughput_per_second" ? (of[name] ?? 0) : countText(of[name] ?? 0)}</dd>
        </div>
      ))}
    </dl>
  );
}

function MaintenanceNote({ maintenance }: { readonly maintenance: Maintenance }) {
  const { reason, started_at, ends_at } = maintenance;
  return (
    <div class="gap">
      <Callout tone="soft">
        <p>
          <b>No job of any queue is handed out</b> since <Time at={started_at} as="when" />
          {reason && `: “${reason}”`}.{" "}
          {ends_at ? (
            <>
              It ends <Time at={ends_at} />.
            </>
          ) : (
            "It ends when somebody ends it."
          )}{" "}
          Deadlines run on.
        </p>
      </Callout>
    </div>
  );
}

interface MaintenanceFormProps extends FormEnd {
  readonly isOn: boolean;
}

function MaintenanceForm({ isOn, ...end }: MaintenanceFormProps) {
  const [duration, setDuration] = useState("");
  const isValid = duration.trim() === "" || readLimit(duration) !== undefined;
  if (isOn)
    return (
      <ActionForm
        title="End the maintenance"
        action="Hand out jobs again"
        act={(reason) => setPauseOfAll(false, null, reason)}
        said="Jobs are handed out again."
        does="Workers of all queues get jobs again, here at once and in other processes within 5 s."
        {...end}
      />
    );
  return (
    <ActionForm
      title="Begin maintenance"
      action="Hand out no jobs"
      isDanger
      blocked={isValid ? undefined : "Write a time such as 30m, or nothing."}
      act={(reason) => setPauseOfAll(true, duration.trim() || null, reason)}
      said="No job of any queue is handed out."
      {...end}
    >
      <p>
        No worker of any queue gets a job, and crons do not fire. Jobs that run go on to their end, and new
        ones are taken in. Deadlines run on: jobs that wait may expire.
      </p>
      <TextField
        label="Ends by itself after"
        value={duration}
        onInput={setDuration}
        placeholder="30m; empty: when somebody ends it"
        isMono
        error={isValid ? undefined : "Such as 30m or 1h30m."}
      />
    </ActionForm>
  );
}
