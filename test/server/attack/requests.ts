/** One request that tries to keep the event loop busy. */
export interface Attack {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly body?: string;
}

const SIZE = 1_000_000;
const many = <Item>(count: number, make: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, index) => make(index));
const keys = (count: number) => Object.fromEntries(many(count, (index) => [`k${index}`, 1]));

/** Keys that are normalised, and sorted by their last character. */
const wild = (count: number) => Object.fromEntries(many(count, (index) => [`u\u0308${index}`, 1]));

const job = (fields: object) => JSON.stringify({ type: "a.b", args: [], ...fields });
const unique = { keys: ["type", "args", "meta"], on_conflict: "ignore" };
const marks = "\u0300\u0316".repeat(SIZE / 4 - 100);
const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
const post = (name: string, path: string, body: string): Attack => ({ name, method: "POST", path, body });
const enqueue = (name: string, fields: object) => post(name, "/jobs", job(fields));

/** Requests of up to 1 MB, each against one way to cost more than its size. */
export function attacks(): Attack[] {
  return [
    ...payloads(),
    ...fields(),
    ...lists(),
    ...reports(),
    ...documents(),
    ...calendars(),
    ...imports(),
    ...queries(),
  ];
}

const id = "01890000-0000-7000-8000-000000000000";

const wideNest = `[${many(1_000, () => nested(95)).join(",")}]`;

function payloads(): Attack[] {
  return [
    enqueue("combining marks in a unique payload", { args: [marks], unique }),
    enqueue("combining marks in a unique meta", { meta: { text: marks.slice(0, 30_000) }, unique }),
    enqueue("combining marks in a unique key's name", { args: [{ [marks]: 1 }], unique }),
    enqueue("90,000 keys in a payload", { args: [keys(90_000)] }),
    enqueue("19,000 keys in a unique payload", { args: [wild(19_000)], unique }),
    enqueue("45,000 keys in a unique payload", { args: [keys(45_000)], unique }),
    enqueue("45,000 keys in a payload", { args: [keys(45_000)] }),
    enqueue("45,000 keys in meta", { meta: keys(45_000) }),
    enqueue("45,000 unknown fields", keys(45_000)),
    enqueue("45,000 keys in options", { options: keys(45_000) }),
    post(
      "a payload of 400,000 lists",
      "/jobs",
      `{"type":"a.b","args":[${many(300_000, () => "[]").join(",")}]}`,
    ),
    post("95,000 nested lists", "/jobs", `{"type":"a.b","args":${wideNest}}`),
    post(
      "95,000 nested lists in a unique payload",
      "/jobs",
      `{"type":"a.b","unique":{"keys":["args"]},"args":[${wideNest}]}`,
    ),
    enqueue("a text of 1 MB", { args: ["x".repeat(SIZE - 100)] }),
    enqueue("a text of escapes", { args: ["\n".repeat(SIZE / 2 - 100)] }),
    post("unclosed quotes", "/jobs", `{"type":"a.b","args":["${'\\"'.repeat(SIZE / 2 - 20)}`),
    post("500,000 digits", "/jobs", `{"type":"a.b","args":[${"9".repeat(SIZE - 50)}]}`),
    post(
      "many long numbers",
      "/jobs",
      `{"type":"a.b","args":[${many(55_000, () => "9007199254740992").join(",")}]}`,
    ),
  ];
}

function fields(): Attack[] {
  return [
    enqueue("300,000 tags", { tags: many(300_000, () => 1) }),
    enqueue("300,000 states of a unique rule", { unique: { states: many(120_000, () => "x") } }),
    enqueue("300,000 delays", { retry: { delays_ms: many(300_000, () => "x") } }),
    enqueue("a long type", { type: `${"a.".repeat(SIZE / 2 - 100)}` }),
    enqueue("a long queue", { queue: "a-".repeat(SIZE / 2 - 100) }),
    enqueue("a long duration", { visibility_timeout: `PT${"1".repeat(SIZE - 200)}S` }),
    enqueue("a long instant", { scheduled_at: "1".repeat(SIZE - 200) }),
    enqueue("a long rate limit key", { rate_limit: { key: "k".repeat(SIZE - 200), concurrency: 1 } }),
  ];
}

function lists(): Attack[] {
  return [
    post(
      "a batch of 1,000 jobs",
      "/jobs/batch",
      JSON.stringify({ jobs: many(1_000, (index) => ({ type: "a.b", args: ["x".repeat(900), index] })) }),
    ),
    post(
      "a batch of 30,000 jobs",
      "/jobs/batch",
      JSON.stringify({ jobs: many(30_000, () => ({ type: "a.b", args: [] })) }),
    ),
    post("a batch of 60,000 numbers", "/jobs/batch", JSON.stringify({ jobs: many(400_000, () => 1) })),
    post(
      "a batch of 1,000 unique jobs",
      "/jobs/batch",
      JSON.stringify({
        jobs: many(1_000, (index) => ({ type: "a.b", args: [index, "y".repeat(800)], unique })),
      }),
    ),
    post(
      "a chain of 5,000 steps",
      "/workflows",
      JSON.stringify({ type: "chain", steps: many(5_000, () => ({ type: "a.b", args: ["x".repeat(100)] })) }),
    ),
    post(
      "a chain of 30,000 steps",
      "/workflows",
      JSON.stringify({ type: "chain", steps: many(30_000, () => ({ type: "a.b", args: [] })) }),
    ),
    post(
      "30,000 steps that are none",
      "/workflows",
      JSON.stringify({ type: "group", jobs: many(400_000, () => 1) }),
    ),
    post(
      "10,000 steps that depend on all",
      "/workflows",
      JSON.stringify({
        steps: many(400, (index) => ({
          id: `s${index}`,
          type: "a.b",
          args: [],
          depends_on: many(index, (before) => `s${before}`),
        })),
      }),
    ),
    post(
      "a workflow nested 90 deep",
      "/workflows",
      `${'{"type":"chain","steps":['.repeat(45)}{"type":"a.b"}${"]}".repeat(45)}`,
    ),
    post(
      "many fetch definitions",
      "/workers/fetch",
      JSON.stringify({
        queues: ["a"],
        definitions: Object.fromEntries(many(30_000, (index) => [`t${index}`, { timeout: 1 }])),
      }),
    ),
    post("300,000 queues", "/workers/fetch", JSON.stringify({ queues: many(300_000, () => "a") })),
    post("300,000 wrong queues", "/workers/fetch", JSON.stringify({ queues: many(300_000, () => "A") })),
  ];
}

function reports(): Attack[] {
  return [
    post(
      "a beat with many labels",
      "/workers/heartbeat",
      JSON.stringify({ worker_id: "w", labels: keys(45_000) }),
    ),
    post(
      "a beat with many jobs",
      "/workers/heartbeat",
      JSON.stringify({ worker_id: "w", active_jobs: many(20_000, () => id) }),
    ),
    post(
      "a beat with 1,000 jobs",
      "/workers/heartbeat",
      JSON.stringify({
        worker_id: "w",
        active_jobs: many(1_000, () => ({ id, fence: 1 })),
        watched_jobs: many(1_000, () => ({ id, fence: 2 })),
      }),
    ),
    post(
      "1,000 acknowledgements",
      "/workers/ack/batch",
      JSON.stringify({ jobs: many(1_000, () => ({ job_id: id, result: "x".repeat(900) })) }),
    ),
    post(
      "20,000 acknowledgements",
      "/workers/ack/batch",
      JSON.stringify({ jobs: many(20_000, () => ({ job_id: id })) }),
    ),
    post(
      "a failure with a long stack",
      "/workers/nack",
      JSON.stringify({
        job_id: id,
        error: { message: "x".repeat(90_000), backtrace: many(80_000, () => "at x") },
      }),
    ),
    post(
      "80,000 log lines",
      `/jobs/${id}/logs`,
      JSON.stringify({ lines: many(30_000, () => ({ message: "x" })) }),
    ),
    post(
      "1,000 log lines",
      `/jobs/${id}/logs`,
      JSON.stringify({ lines: many(1_000, () => ({ message: "x".repeat(900) })) }),
    ),
  ];
}

function documents(): Attack[] {
  return [
    {
      name: "a checkpoint of 45,000 keys",
      method: "PUT",
      path: `/jobs/${id}/checkpoint`,
      body: JSON.stringify({ state: keys(45_000) }),
    },
    {
      name: "a nested checkpoint",
      method: "PUT",
      path: `/jobs/${id}/checkpoint`,
      body: `{"state":${wideNest}}`,
    },
    post(
      "a cron of 45,000 keys",
      "/cron",
      JSON.stringify({ name: "c", expression: "* * * * *", job: { type: "a.b", args: [keys(45_000)] } }),
    ),
    post(
      "a long cron expression",
      "/cron",
      JSON.stringify({
        name: "c",
        expression: `${"1,".repeat(SIZE / 2 - 200)}1 * * * *`,
        job: { type: "a.b", args: [] },
      }),
    ),
    post(
      "a long cron list",
      "/cron",
      JSON.stringify({
        name: "c",
        expression: `${many(120, (index) => index % 60).join(",")} * * * *`,
        job: { type: "a.b", args: [] },
      }),
    ),
    post(
      "20,000 ids in a bulk action",
      "/admin/jobs/bulk/cancel",
      JSON.stringify({ job_ids: many(25_000, () => id), confirm: true }),
    ),
    post(
      "10,000 ids in a bulk action",
      "/admin/jobs/bulk/cancel",
      JSON.stringify({ job_ids: many(10_000, () => id), confirm: true }),
    ),
  ];
}

const event = (lines: string) => `BEGIN:VEVENT\r\n${lines}\r\nEND:VEVENT\r\n`;
const week = { mon: "09:00-17:00", tue: "09:00-17:00" };

function calendars(): Attack[] {
  const put = (name: string, fields: object): Attack => ({
    name,
    method: "PUT",
    path: "/admin/calendars/attacked",
    body: JSON.stringify({ zone: "Europe/Berlin", week, ...fields }),
  });
  const ics = (count: number, lines: string) => ({
    ics: `BEGIN:VCALENDAR\r\n${event(lines).repeat(count)}END:VCALENDAR\r\n`,
    years: 50,
  });
  const cron = (name: string, fields: object) =>
    post(name, "/cron", JSON.stringify({ name: "k", type: "a.b", calendar: "attacked", ...fields }));
  const when = (name: string, fields: object) =>
    post(name, "/admin/when", JSON.stringify({ when: { calendar: "attacked", ...fields } }));
  const holidays = many(2_000, (index) => ({
    date: new Date(Date.UTC(2027, 0, 1 + index)).toISOString().slice(0, 10),
  }));
  return [
    put("a calendar of 2,000 closed days", { days: holidays }),
    put("4,900 holidays since the year 1", ics(4_900, "DTSTART:00010101\r\nRRULE:FREQ=YEARLY")),
    put("4,900 holidays of 100 days", ics(4_900, "DTSTART:20200101\r\nDURATION:P100D\r\nRRULE:FREQ=YEARLY")),
    put(
      "a holiday without 90,000 days",
      ics(1, `DTSTART:20200101\r\nEXDATE:${"20200101,".repeat(90_000)}20200101`),
    ),
    put("a calendar of folded lines", { ics: `BEGIN:VCALENDAR${"\r\n ".repeat(160_000)}` }),
    put("a calendar of two days a week", {}),
    cron("1,000 missed days of a calendar", { cron: "0 0 * * *", missed_policy: "P1000D" }),
    cron("1,000 missed days that move", { cron: "0 0 * * *", missed_policy: "P1000D", closed_days: "next" }),
    cron("1,000 missed days that move back", {
      cron: "30 2 * * *",
      missed_policy: "P1000D",
      closed_days: "previous",
    }),
    cron("every second of a calendar", { cron: "* * * * * *", missed_policy: "P300D" }),
    when("1,000 working days", { working_days: 1_000 }),
    when("1,000 working days back", { working_days: -1_000 }),
    when("1,000 working days before the last day", { working_days: -1_000, date: "9999-12-31" }),
  ];
}

const day = "2026-01-01T00:00:00.000Z";
const fresh = { priority: 0, state: "available", createdAt: day, dueAt: day };
const line = (fields: object) => ({ kind: "job", id, type: "a.b", queue: "default", ...fresh, ...fields });
const lines = (name: string, all: readonly unknown[]) =>
  post(name, "/admin/import", JSON.stringify({ lines: all, dry_run: true }));

function imports(): Attack[] {
  return [
    lines(
      "an import of 1,000 lines",
      many(1_000, () => line({ payload: JSON.stringify("x".repeat(700)) })),
    ),
    lines(
      "an import of 300,000 lines",
      many(300_000, () => 1),
    ),
    lines("an import of a payload of 45,000 keys", [line({ payload: JSON.stringify(keys(45_000)) })]),
    lines("an import of a line of 45,000 keys", [{ ...line({}), ...keys(45_000) }]),
    post("an import of nested lists", "/admin/import", `{"lines":[{"kind":"job","payload":${wideNest}}]}`),
    lines("an import of a key with 9,000 holders", [
      {
        kind: "unique",
        key: "k",
        holders: many(9_000, () => ({ id, at: day, until: null, countsEnded: true })),
      },
    ]),
    lines(
      "an import of 1,000 keys with many holders",
      many(1_000, (index) => ({
        kind: "unique",
        key: `k${index}`,
        holders: many(8, () => ({ id, at: day, until: day, countsEnded: true })),
      })),
    ),
  ];
}

function queries(): Attack[] {
  return [
    {
      name: "a long query",
      method: "GET",
      path: `/events?queues=${"a,".repeat(4_900)}&types=${"b,".repeat(900)}`,
    },
    {
      name: "many query parameters",
      method: "GET",
      path: `/jobs?${many(2_000, (index) => `a${index}=1`).join("&")}`,
    },
    { name: "a long search", method: "GET", path: `/admin/jobs?search=${"%25".repeat(500)}` },
    { name: "a long path", method: "GET", path: `/jobs/${"%C3%A9".repeat(2_000)}` },
  ];
}
