import type { Command } from "commander";
import { refuse } from "../../core/errors.ts";
import { parseDuration } from "../../core/time.ts";
import { countNumber, withCommands, withPage, withTarget } from "../declare.ts";
import { printable } from "../output/paint.ts";
import { type Column, listText } from "../output/table.ts";
import { relativeText } from "../output/times.ts";
import { act } from "../run-command.ts";
import { readItems } from "../target/read-items.ts";
import type { Fields } from "../target/target.ts";

const PATH = "/ojs/v1/webhooks/subscriptions";
const LOG = "/ojs/v1/webhooks/deliveries";
const SUBSCRIPTION = '{"id","url","events","active","circuit","success_count","failure_count",…}';
const DELIVERY = '{"id","subscription_id","status","event_types","attempts","response","errors",…}';

export function register(webhooks: Command): void {
  webhooks.description("Webhooks: events that are sent to endpoints over HTTP.");
  withCommands(webhooks, {
    ls: declareList,
    add: declareAdd,
    rm: declareRemove,
    test: declareTest,
    deliveries: declareDeliveries,
    redeliver: declareRedeliver,
    rotate: declareRotate,
  });
}

const on = (path: string, id: string | undefined) => `${path}/${encodeURIComponent(id ?? "")}`;

const columns = (now: number): Column<Fields>[] => [
  { title: "ID", show: ({ id }) => String(id) },
  { title: "URL", show: ({ url }) => printable(String(url)), shrinkTo: 20 },
  { title: "EVENTS", show: ({ events }) => printable((events as string[]).join(" ")), shrinkTo: 10, drop: 2 },
  { title: "STATE", show: stateText },
  { title: "SENT", show: ({ success_count }) => String(success_count), align: "right" },
  { title: "FAILED", show: ({ failure_count }) => String(failure_count), align: "right" },
  { title: "LAST", show: ({ last_delivery_at }) => relativeText(last_delivery_at, now), drop: 1 },
];

function stateText({ active, circuit }: Fields): string {
  if (active === false) return "inactive";
  const { state } = circuit as Fields;
  return state === "closed" ? "active" : `circuit ${state}`;
}

const NO_WEBHOOKS = "No webhooks.\nSubscribe an endpoint with: curfew webhooks add <url> --event job.failed";
const NO_DELIVERIES = "No deliveries. Call an endpoint once with: curfew webhooks test <id>";

function declareList(command: Command): void {
  command.description("List subscriptions, what was sent, and whether their endpoint answers.");
  withPage(withTarget(command), {
    examples: [["webhooks ls", "all of them"]],
    json: `{"items":[${SUBSCRIPTION}]}`,
  });
  act(command, async ({ target, output }) => {
    const { items } = await readItems(target, PATH);
    output.answer({ items }, () => listText(columns(target.now()), items, NO_WEBHOOKS));
  });
}

interface AddOptions {
  readonly event: readonly string[];
  readonly queue?: readonly string[];
  readonly type?: readonly string[];
  readonly ordered?: boolean;
  readonly batch?: number;
  readonly header?: readonly string[];
}

function headersOf(lines: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(":");
      // The line may be a secret, so the message does not repeat it.
      if (colon < 1)
        throw refuse("invalid_option", "--header", "this text", "write a header as 'Name: value'");
      return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
    }),
  );
}

function declareAdd(command: Command): void {
  command
    .description("Subscribe an endpoint to events from now on; prints its secret, which is not shown again.")
    .argument("<url>", "where to send events")
    .requiredOption("--event <name...>", "events, such as job.failed, job.* or *")
    .option("--queue <name...>", "only events of these queues")
    .option("--type <type...>", "only events of jobs of these types")
    .option("--ordered", "send the events of one job one after the other")
    .option("--batch <events>", "send up to this many events with one call", countNumber)
    .option(
      "--header <header...>",
      "send this header with each call, as 'Name: value'; it is not shown again",
    );
  withPage(withTarget(command), {
    examples: [
      ["webhooks add https://example.com/hook --event job.failed job.discarded", "what fails"],
      [
        "webhooks add https://example.com/hook --event '*' --queue mail --ordered",
        "all of one queue, in order",
      ],
      [
        "webhooks add https://example.com/hook --event '*' --header 'Authorization: Bearer t0ken'",
        "for an endpoint behind a gateway that asks for a token",
      ],
    ],
    json: `{"id","secret",…} as in docs/openapi.json`,
  });
  act<AddOptions>(command, async ({ target, output }, asked, [url]) => {
    const { event, queue, type, ordered, batch, header } = asked;
    const made = await target.send("POST", PATH, {
      url,
      events: event,
      ...((queue ?? type) && {
        filter: { ...(queue && { queues: queue }), ...(type && { job_types: type }) },
      }),
      ...(ordered && { ordered }),
      ...(batch !== undefined && { batch: { max_events: batch } }),
      ...(header && { headers: headersOf(header) }),
    });
    output.answer(made, () => `${made.id}\nsecret ${made.secret}`);
    output.note("Keep the secret: the endpoint needs it to check signatures, and it is not shown again.");
  });
}

function declareRemove(command: Command): void {
  command
    .description("Delete a subscription and cancel its deliveries.")
    .argument("<id>", "its id, from webhooks ls");
  withPage(withTarget(command), {
    examples: [["webhooks rm sub_01j…", "nothing more is sent"]],
    json: '{"deleted":true,"id"}',
  });
  act(command, async ({ target, output }, _options, [id]) => {
    const gone = await target.send("DELETE", on(PATH, id));
    output.answer(gone, () => `Deleted ${gone.id}.`);
  });
}

function declareTest(command: Command): void {
  command
    .description("Call the endpoint once with an event webhook.test. Needs --url: a server makes the call.")
    .argument("<id>", "its id, from webhooks ls");
  withPage(withTarget(command), {
    examples: [["webhooks test sub_01j… --url http://127.0.0.1:8080", "the status, or why there is none"]],
    json: '{"success","status_code","response_time_ms","response_body","error"}',
  });
  act(command, async ({ target, output }, _options, [id]) => {
    const tested = await target.send("POST", `${on(PATH, id)}/test`, {});
    const { success, status_code, response_time_ms, error } = tested;
    output.answer(tested, () =>
      error === null
        ? `${success ? "ok" : "failed"}: the endpoint answered ${status_code} after ${response_time_ms} ms`
        : `failed: ${printable(String(error))}`,
    );
  });
}

const deliveryColumns = (now: number): Column<Fields>[] => [
  { title: "ID", show: ({ id }) => String(id) },
  { title: "STATUS", show: ({ status }) => String(status) },
  {
    title: "EVENTS",
    show: ({ event_types }) => printable((event_types as string[]).join(" ")),
    shrinkTo: 12,
  },
  { title: "CALLS", show: ({ attempts }) => String(attempts), align: "right" },
  { title: "MADE", show: ({ created_at }) => relativeText(created_at, now), drop: 2 },
  { title: "NEXT", show: ({ next_attempt_at }) => relativeText(next_attempt_at, now), drop: 3 },
  { title: "ANSWER", show: answerText, shrinkTo: 12, drop: 1 },
];

function answerText({ response, errors }: Fields): string {
  if (response) return String((response as Fields).status_code);
  return printable(String((errors as readonly Fields[]).at(-1)?.message ?? "-"));
}

function declareDeliveries(command: Command): void {
  command
    .description("List deliveries, the newest first.")
    .argument("[id]", "of one subscription")
    .option("--status <status>", "waiting, calling, retrying, delivered, dead or cancelled")
    .option("-n, --count <count>", "how many", countNumber, 20);
  withPage(withTarget(command), {
    examples: [
      ["webhooks deliveries", "the last 20"],
      ["webhooks deliveries sub_01j… --status dead", "what was given up"],
    ],
    json: `{"items":[${DELIVERY}]}`,
  });
  act<{ readonly status?: string; readonly count: number }>(
    command,
    async ({ target, output }, { status, count }, [id]) => {
      const { items } = await readItems(target, LOG, { subscription_id: id, status }, { most: count });
      output.answer({ items }, () => listText(deliveryColumns(target.now()), items, NO_DELIVERIES));
    },
  );
}

function declareRedeliver(command: Command): void {
  command
    .description("Send a delivery again, whether it is dead, waits or was delivered.")
    .argument("<id>", "its id, from webhooks deliveries");
  withPage(withTarget(command), {
    examples: [["webhooks redeliver del_01j…", "under the same id, so that the receiver can tell"]],
    json: DELIVERY,
  });
  act(command, async ({ target, output }, _options, [id]) => {
    const { delivery } = await target.send("POST", `${on(LOG, id)}/redeliver`, {});
    output.answer(delivery, () => `${(delivery as Fields).id} ${(delivery as Fields).status}`);
  });
}

function declareRotate(command: Command): void {
  command
    .description("Give a subscription a new secret; prints it. Calls are signed with both for a while.")
    .argument("<id>", "its id, from webhooks ls")
    .option("--overlap <duration>", "how long the old secret is used too", "1d");
  withPage(withTarget(command), {
    examples: [["webhooks rotate sub_01j… --overlap 2h", "change the endpoint within two hours"]],
    json: '{"id","secret"}',
  });
  act<{ readonly overlap: string }>(command, async ({ target, output }, { overlap }, [id]) => {
    const seconds = parseDuration(overlap, "--overlap", { zero: true }) / 1_000;
    const made = await target.send("POST", `${on(PATH, id)}/rotate-secret`, { overlap: `PT${seconds}S` });
    output.answer(made, () => `secret ${made.secret}`);
  });
}
