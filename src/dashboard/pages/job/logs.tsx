import type { Logs } from "../../../ojs/replies/wire-replies.ts";
import { readLogs } from "../../api/jobs.ts";
import { type Resource, useResource } from "../../api/resource.ts";
import { Failure } from "../../ui/callout.tsx";
import { Card } from "../../ui/card.tsx";
import { Time } from "../../ui/time.tsx";

const MOST = 500;

export const useLogs = (id: string): Resource<Logs> =>
  useResource(`logs ${id}`, (signal) => readLogs(id, signal), { live: 2_000 });

/** What the handler wrote, by attempt. */
export function JobLogs({ logs }: { readonly logs: Resource<Logs> }) {
  const lines = (logs.data?.lines ?? []).slice(-MOST);
  return (
    <Card title="Log" note={lines.length === 0 ? undefined : lines.length}>
      {logs.error && !logs.data && (
        <div class="body">
          <Failure what="The log" error={logs.error} onRetry={logs.reload} />
        </div>
      )}
      {logs.data && lines.length === 0 && (
        <p class="body t3">
          Nothing logged. A handler's <code>log()</code> writes here.
        </p>
      )}
      {lines.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and a keyboard must be able to.
        <ol class="logs" tabIndex={0} aria-label="Lines of the log">
          {lines.map((line, index) => (
            <>
              {line.attempt !== lines[index - 1]?.attempt && (
                <li class="div" key={`attempt ${line.attempt} ${index}`}>
                  {line.attempt ? `attempt ${line.attempt}` : "before the first attempt"}
                </li>
              )}
              <li key={`${line.at} ${index}`}>
                <Time at={line.at} as="clock" />
                <span class="m">
                  {line.message} {line.fields && <span class="fields">{JSON.stringify(line.fields)}</span>}
                </span>
              </li>
            </>
          ))}
        </ol>
      )}
    </Card>
  );
}
