import type { ComponentChildren } from "preact";
import type { Resource } from "../api/resource.ts";
import { Empty, Failure, Skeleton, StaleNote } from "./callout.tsx";

interface ShownProps<Value> {
  readonly of: Resource<Value>;
  /** What it is, as the subject of a sentence: "The list". */
  readonly what: string;
  /** What a server that answers 404 does not offer, such as "sagas". */
  readonly offers?: string;
  readonly rows?: number;
  readonly children: (data: Value) => ComponentChildren;
}

/** What was read; or that it is on its way; or why it could not be read, in the server's words. */
export function Shown<Value>({ of, what, offers, rows, children }: ShownProps<Value>) {
  if (of.data !== undefined)
    return (
      <>
        <StaleNote of={of} what={what} />
        {children(of.data)}
      </>
    );
  if (offers !== undefined && of.error?.status === 404)
    return (
      <div class="tablewrap">
        <Empty icon="info" title={`This server does not offer ${offers}`}>
          <p>
            It answered: {of.error.message}. A newer curfew serves this page; the version here is at the foot
            of the navigation.
          </p>
        </Empty>
      </div>
    );
  if (of.error) return <Failure what={what} error={of.error} onRetry={of.reload} />;
  // With a key, so that its element is not reused for what comes: that would be seen as a jump to another place.
  return (
    <div class="tablewrap" key="loading">
      <Skeleton rows={rows ?? 8} />
    </div>
  );
}

/** Commands that show the next step, in an empty state. */
export function Commands({ lines }: { readonly lines: readonly string[] }) {
  return (
    <div class="code">
      {lines.map((line) => (
        <div key={line}>{line}</div>
      ))}
    </div>
  );
}
