import { useState } from "preact/hooks";
import type { Job } from "../../../ojs/replies/wire-replies.ts";
import { findJobs } from "../../api/jobs.ts";
import { serverNow } from "../../state/clock.ts";
import { query } from "../../state/router.ts";
import { toast } from "../../state/toasts.ts";
import { mostAttempts } from "../../ui/attempts.ts";
import { Button } from "../../ui/button.tsx";
import { countText } from "../../ui/format.ts";
import { listQuery } from "./filters.ts";

/** A file has an end: who needs more reads by cursor. */
const MOST = 10_000;
const STEP = 200;

const COLUMNS: readonly (readonly [name: string, value: (job: Job) => string | number | undefined])[] = [
  ["id", ({ id }) => id],
  ["type", ({ type }) => type],
  ["queue", ({ queue }) => queue],
  ["state", ({ state }) => state],
  ["priority", ({ priority }) => priority],
  ["attempt", ({ attempt }) => attempt],
  ["max_attempts", mostAttempts],
  ["created_at", ({ created_at }) => created_at],
  ["started_at", ({ started_at }) => started_at],
  ["ended_at", (job) => job.discarded_at ?? job.cancelled_at ?? job.completed_at],
  ["error_code", ({ error }) => error?.code],
  ["error", ({ error }) => error?.message],
];

/** A text that a spreadsheet would take for a formula gets a quote in front, so that it stays a text. */
function cell(value: string | number | undefined): string {
  if (typeof value === "number") return String(value);
  const text = value ?? "";
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function csvOf(jobs: readonly Job[]): string {
  const rows = [
    COLUMNS.map(([name]) => name),
    ...jobs.map((job) => COLUMNS.map(([, value]) => cell(value(job)))),
  ];
  return `${rows.map((row) => row.join(",")).join("\r\n")}\r\n`;
}

/** Everything that the filter fits, up to a bound, as the list shows it now. */
export function ExportButton() {
  const [count, setCount] = useState<number>();
  const run = async () => {
    const jobs: Job[] = [];
    let cursor: string | null = null;
    setCount(0);
    do {
      const asked = { ...listQuery(query.value, serverNow()), per_page: STEP, cursor };
      const result: Awaited<ReturnType<typeof findJobs>> = await findJobs(asked);
      if (!result.ok) {
        setCount(undefined);
        return toast(`The export stopped: ${result.error.message}`, { kind: "failed" });
      }
      jobs.push(...result.data.items);
      cursor = result.data.pagination.next_cursor;
      setCount(jobs.length);
    } while (cursor !== null && jobs.length < MOST);
    setCount(undefined);
    save(csvOf(jobs));
    toast(
      `${countText(jobs.length)} jobs are in the file${cursor === null ? "" : "; there are more, so narrow the filter"}.`,
    );
  };
  return (
    <Button icon="down2" busy={count !== undefined} onClick={() => void run()}>
      {count === undefined ? "Export CSV" : `${countText(count)} read…`}
    </Button>
  );
}

function save(text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = "jobs.csv";
  link.click();
  URL.revokeObjectURL(url);
}
