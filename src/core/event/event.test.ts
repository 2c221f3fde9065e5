import { describe, expect, it } from "vitest";
import { toCloudEvent } from "../../ojs/cloud-event.ts";
import { UUID_V7 } from "../ids.ts";
import type { Json } from "../schema.ts";
import { eventId } from "./event-id.ts";
import { fitsFilter, isEventCursor, journalEvent } from "./journal-event.ts";
import { wholeEvent } from "./new-event.ts";

const AT = Date.UTC(2030, 0, 1);

describe("the id of an event", () => {
  it("is a UUIDv7 of its instant, and the same each time", () => {
    const id = eventId(AT, "12.7-3");
    expect(id.slice(4)).toMatch(UUID_V7);
    expect(Number.parseInt(id.slice(4, 17).replace("-", ""), 16)).toBe(AT);
    expect(eventId(AT, "12.7-3")).toBe(id);
  });

  it("differs for the places of a long stream, all in one millisecond", () => {
    const ids = new Set<string>();
    for (let row = 0; row < 2_000; row++)
      for (let position = 0; position < 100; position++)
        ids.add(eventId(AT, `${row}.${row * 7}-${position}`));
    expect(ids.size).toBe(200_000);
  });
});

describe("an event that is read", () => {
  it("is one of ours, or none", () => {
    for (const body of [null, 1, "job.started", [], {}, { name: 1, at: AT }, { name: "x" }])
      expect(journalEvent(body, "1")).toBeNull();
    expect(journalEvent({ name: "job.failed", at: AT, job: "a" }, "1")).toMatchObject({
      job: "a",
      cursor: "1",
    });
  });

  it("derives its id from its position", () => {
    const ids = ["1", "2", "1"].map(
      (cursor) => journalEvent({ name: "job.started", at: AT, job: "a", attempt: 1 }, cursor)?.id,
    );
    expect(new Set(ids).size).toBe(2);
    expect(ids[2]).toBe(ids[0]);
  });

  it("is chosen by name, queue and job", () => {
    const event = { name: "job.failed", at: AT, job: "a", queue: "mail" };
    expect(fitsFilter(event, {})).toBe(true);
    expect(fitsFilter(event, { types: ["job.*"], queues: ["mail"], job: "a" })).toBe(true);
    for (const filter of [
      { types: ["job"] },
      { types: ["jo.*"] },
      { types: [] },
      { queues: ["m"] },
      { job: "b" },
    ])
      expect(fitsFilter(event, filter), JSON.stringify(filter)).toBe(false);
    expect(fitsFilter({ name: "worker.ready", at: AT }, { queues: ["mail"] })).toBe(false);
  });

  it("has a cursor that stores can be asked with", () => {
    for (const cursor of ["0", "12", "7.12", "7.12-3", "12-3", "1.7.12", "1.7.12-3"])
      expect(isEventCursor(cursor)).toBe(true);
    for (const cursor of ["", "a", "1.2.3.4", "1-", "-1", "1-2-3", "1 ", "9".repeat(19), 7, null])
      expect(isEventCursor(cursor), String(cursor)).toBe(false);
  });
});

describe("the envelope", () => {
  it("describes a job in the words of Open Job Spec", () => {
    const error = { type: "timeout", code: "timeout", message: "Timed out after 1s", attempt: 2, at: AT };
    const event = { id: "evt_1", cursor: "1", name: "job.discarded", at: AT, job: "a", type: "mail.send" };
    const kind = { kind: "execution", limit: 1_000, elapsed: 1_001 } as const;
    expect(
      toCloudEvent({
        ...event,
        queue: "mail",
        attempt: 2,
        elapsed: 5,
        deadLetter: true,
        error: { ...error, ...kind },
      }),
    ).toEqual({
      specversion: "1.0",
      id: "evt_1",
      type: "job.discarded",
      source: "ojs://curfew",
      time: "2030-01-01T00:00:00.000Z",
      subject: "a",
      data: {
        job_id: "a",
        job_type: "mail.send",
        queue: "mail",
        attempt: 2,
        duration_ms: 5,
        dead_letter: true,
        total_attempts: 2,
        timeout_kind: "execution",
        limit_seconds: 1,
        elapsed_seconds: 1.001,
        last_error: {
          type: "timeout",
          code: "timeout",
          message: "Timed out after 1s",
          attempt: 2,
          occurred_at: "2030-01-01T00:00:00.000Z",
          timeout_kind: "execution",
          limit_seconds: 1,
          elapsed_seconds: 1.001,
        },
      },
    });
  });

  it("describes anything else with the data it was given", () => {
    const event = { id: "evt_2", cursor: "2", name: "cron.triggered", at: AT, subject: "nightly" };
    expect(toCloudEvent({ ...event, queue: "mail", data: { run: 7 } }, "https://a.test")).toMatchObject({
      source: "https://a.test",
      subject: "nightly",
      data: { queue: "mail", run: 7 },
    });
  });
});

it("an event in two parts is read as one, and its own part wins", () => {
  expect(wholeEvent({ event: [1] })).toEqual([1]);
  expect(wholeEvent({ event: { a: 1, b: 1 }, of: { b: 2 } })).toEqual({ a: 1, b: 2 });
});

describe("a CloudEvent", () => {
  it("gives fields of workers, sagas, timeouts and workflows their names on the wire", () => {
    const data = (name: string, fields: Record<string, Json>) =>
      toCloudEvent({ name, at: 0, id: "evt_1", cursor: "1", subject: "s", data: fields }).data;
    expect(data("worker.lost", { worker: "w", seenAt: 0 })).toEqual({
      worker_id: "w",
      last_seen_at: "1970-01-01T00:00:00.000Z",
    });
    expect(data("worker.blocked", { worker: "w", gap: 5 })).toEqual({ worker_id: "w", gap_ms: 5 });
    expect(data("sandbox.broken", { worker: "w", type: "a.b" })).toEqual({ worker_id: "w", job_type: "a.b" });
    expect(data("saga.completed", { saga: "1", type: "order" })).toEqual({
      saga_id: "1",
      saga_type: "order",
    });
    expect(data("timeout.dead", { timeout: "t", tries: 10 })).toEqual({ timeout_id: "t", tries: 10 });
    expect(data("workflow.completed", { workflow: "w", elapsed: 7 })).toEqual({
      workflow_id: "w",
      duration_ms: 7,
    });
  });
});
