import type { Command } from "commander";
import { countNumber, REASON, type ReasonOption, withCommands, withPage, withTarget } from "../declare.ts";
import { paintState, printable } from "../output/paint.ts";
import { type Column, fieldsText, listText } from "../output/table.ts";
import { timeoutTable } from "../output/timeout-table.ts";
import { relativeText } from "../output/times.ts";
import { act } from "../run-command.ts";
import { offered } from "../target/not-found.ts";
import type { Fields } from "../target/target.ts";

const PATH = "/ojs/v1/admin/sagas";

export function register(sagas: Command): void {
  sagas.description("Sagas: state that waits for messages and timeouts.");
  withCommands(sagas, { ls: declareList, show: declareShow, compensate: declareCompensate });
}

const columns = (now: number): Column<Fields>[] => [
  { title: "TYPE", show: ({ type }) => printable(String(type)), shrinkTo: 10 },
  { title: "ID", show: ({ id }) => printable(String(id)), shrinkTo: 12 },
  { title: "STATUS", show: ({ status }) => paintState(String(status)) },
  { title: "STARTED", show: ({ started_at }) => relativeText(started_at, now), drop: 2 },
  { title: "CHANGED", show: ({ changed_at }) => relativeText(changed_at, now), drop: 1 },
  { title: "WAITS FOR", show: ({ pending }) => pendingText(pending), shrinkTo: 10 },
];

function pendingText(pending: unknown): string {
  return printable((pending as readonly Fields[]).map(({ name }) => String(name)).join(", "));
}

interface ListOptions {
  readonly type?: string;
  readonly ascending?: boolean;
  readonly limit: number;
}

const NO_SAGAS = "No sagas. A message starts one: engine.send(saga, name, message)";

function declareList(command: Command): void {
  command.description(
    "List sagas by type and id, the last first, alive and completed. Where ids grow, the newest come first.",
  );
  withTarget(command)
    .option("--type <type>", "only sagas of this type")
    .option("--ascending", "the first type and id first")
    .option("--limit <count>", "at most this many, up to 200", countNumber, 50);
  withPage(command, {
    examples: [["sagas ls --type order", "all orders"]],
    json: '{"items":[{"type","id","status","version","started_at","changed_at","completed_at","pending"}],"has_more"}',
  });
  act<ListOptions>(command, async ({ target, output }, { type, ascending, limit }) => {
    const asked = { type, order: ascending ? "asc" : "desc", limit: Math.max(1, Math.min(200, limit)) };
    const { items, pagination } = await offered(target, "sagas", () => target.get(PATH, asked));
    output.answer({ items, has_more: (pagination as Fields).has_more }, () =>
      listText(columns(target.now()), items as readonly Fields[], NO_SAGAS),
    );
  });
}

function declareShow(command: Command): void {
  command
    .description("Show a saga: its state, and the timeouts and messages that wait for it.")
    .argument("<type>", "its type")
    .argument("<id>", "its correlation value");
  withPage(withTarget(command), {
    examples: [["sagas show order 42", "order 42"]],
    json: '{"type","id","status",…,"state","timeouts":[timeout],"messages":[timeout]}',
  });
  act(command, async ({ target, output }, _options, [type, id]) => {
    const path = `${PATH}/${encodeURIComponent(type as string)}/${encodeURIComponent(id as string)}`;
    const saga = await offered(target, "sagas", () => target.get(path));
    output.answer(saga, () => sagaText(saga, target.now()));
  });
}

function declareCompensate(command: Command): void {
  command
    .description(
      "Take a saga back: run its undos, the last one first, or go on after one that failed for good.",
    )
    .argument("<type>", "its type")
    .argument("<id>", "its correlation value");
  withTarget(command).option(...REASON);
  withPage(command, {
    examples: [["sagas compensate order 42", "take order 42 back"]],
    json: '{"type","id","answer":"begun"|"resumed"|"running"}',
  });
  act<ReasonOption>(command, async ({ target, output }, { reason }, [type, id]) => {
    const path = `${PATH}/${encodeURIComponent(type as string)}/${encodeURIComponent(id as string)}/compensate`;
    const reply = await offered(target, "sagas", () => target.send("POST", path, { reason }));
    const says = {
      begun: "is being taken back",
      resumed: "goes on with its undos",
      running: "is already being taken back",
    };
    output.answer(
      reply,
      () => `Saga ${printable(`${type} ${id}`)} ${says[reply.answer as keyof typeof says]}.`,
    );
  });
}

function sagaText(saga: Fields, now: number): string {
  const fields = fieldsText([
    ["saga", `${printable(String(saga.type))} ${printable(String(saga.id))}`],
    ["status", paintState(String(saga.status))],
    ["version", String(saga.version)],
    ["started", relativeText(saga.started_at, now)],
    ["changed", relativeText(saga.changed_at, now)],
    ...compensationLines(saga, now),
    ["state", printable(JSON.stringify(saga.state))],
  ]);
  const waiting = [...(saga.timeouts as readonly Fields[]), ...(saga.messages as readonly Fields[])];
  return waiting.length === 0 ? fields : `${fields}\n\n${timeoutTable(waiting, now)}`;
}

function compensationLines(saga: Fields, now: number): [string, string][] {
  const undos = (saga.undos as readonly Fields[] | undefined) ?? [];
  const compensation = saga.compensation as Fields | null | undefined;
  const failed = compensation?.failed as Fields | null | undefined;
  return [
    ...(undos.length > 0
      ? [["undos", printable(undos.map(({ name }) => String(name)).join(", "))] as [string, string]]
      : []),
    ...(compensation ? [["taken back", relativeText(compensation.started_at, now)] as [string, string]] : []),
    ...(failed ? [["failed undo", printable(String(failed.error))] as [string, string]] : []),
  ];
}
