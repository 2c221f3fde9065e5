import type { ComponentChildren } from "preact";
import type { ApiError } from "../api/client.ts";
import type { Resource } from "../api/resource.ts";
import { Button } from "./button.tsx";
import type { IconName } from "./drawings.ts";
import { Icon, Mark } from "./icon.tsx";
import type { Tone } from "./look.ts";
import { Time } from "./time.tsx";

const MARKS = {
  soft: "grace",
  force: "discarded",
  done: "done",
  run: "info",
  wait: "info",
  off: "info",
} as const;

export function Callout({
  tone = "wait",
  children,
}: {
  readonly tone?: Tone;
  readonly children: ComponentChildren;
}) {
  return (
    <div class={`callout is-${tone}`} role={tone === "force" ? "alert" : "note"}>
      <Mark name={MARKS[tone]} />
      {children}
    </div>
  );
}

/** What could not be read, in the server's words, and the way on. */
export function Failure({
  what,
  error,
  onRetry,
}: {
  readonly what: string;
  readonly error: ApiError;
  readonly onRetry?: () => void;
}) {
  return (
    <Callout tone="force">
      <div class="grow">
        <p>
          <b>{what} could not be read.</b> {error.message}
        </p>
        {error.requestId && <p class="t3 small">Request {error.requestId}</p>}
      </div>
      {onRetry && (
        <Button small onClick={onRetry}>
          Try now
        </Button>
      )}
    </Callout>
  );
}

/** Shown above data that could not be read again: what is below is old, and says how old. */
export function StaleNote<Value>({ of, what }: { readonly of: Resource<Value>; readonly what: string }) {
  if (!of.error || of.data === undefined) return null;
  return (
    <Callout tone="soft">
      <p class="grow">
        {what} below is as of <Time at={of.at} as="clock" />. {of.error.message}
      </p>
      <Button small onClick={of.reload}>
        Try now
      </Button>
    </Callout>
  );
}

/** Nothing to show, and what to do about it. */
export function Empty({
  icon = "jobs",
  title,
  children,
}: {
  readonly icon?: IconName;
  readonly title: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <h3>{title}</h3>
      {children}
    </div>
  );
}

const WIDTHS = ["w50", "w70", "w30", "w90", "w20", "w70", "w50", "w30"] as const;

/** Rows that stand for data that is on its way. It appears late, so that what is quick never flickers. */
export function Skeleton({ rows = 8 }: { readonly rows?: number }) {
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, index) => (
        <div class="sk-row" key={index}>
          <span class={`sk ${WIDTHS[index % WIDTHS.length]}`} />
        </div>
      ))}
    </div>
  );
}
