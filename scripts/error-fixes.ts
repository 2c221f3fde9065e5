// tidy: table
import type { ErrorCode } from "../src/core/errors.ts";

/** What to do about each error, for docs/errors.md. The compiler asks for an entry of each code. */
export const ERROR_FIXES: Readonly<Record<ErrorCode, string>> = {
  invalid_duration: 'Write `"250ms"`, `"30s"`, `"5m"`, `"2h"` or `"7d"`, or `{ minutes: 5 }`.',
  invalid_instant:
    "Pass a `Date`, a `Temporal.Instant`, or a text with an offset, such as `2030-01-31T12:00:00Z`.",
  invalid_timeout:
    "Name one of `wait`, `attempt`, `total`, `grace` and `heartbeat`, with a duration that its field allows.",
  invalid_when: "Write a delay, an instant, or a wall clock with a zone: see [When](guides/sagas.md#when).",
  invalid_cron: "Correct the field that the message names: see [Expressions](guides/cron.md#expressions).",
  invalid_calendar:
    "Correct the field that the message names: see [Business calendars](guides/calendars.md).",
  unknown_calendar: "Store the calendar with `engine.calendars.put`, or correct its name.",
  never_opens: "Give the calendar a weekday or a special day on which it opens.",
  unknown_zone: "Write a zone of the IANA database, such as `Europe/Berlin`; newer zones need a newer Node.",
  no_such_time: "Choose another time, or let `gap` and `overlap` decide instead of `reject`.",
  timeouts_contradict: "Make `total` at least as long as `attempt`, or leave one of them out.",
  never_runs:
    "Schedule the job earlier, or give it a later end: a longer `wait` or `total`, or a later `expiresAt`.",
  invalid_retry: "Correct the field of `retry` that the message names: see [Retries](guides/retries.md).",
  invalid_name: "Use the characters and the length that the message names.",
  invalid_option: "Pass what the message asks for: see [Options](options.md).",
  two_homes:
    "Leave out the unique key, the limit or the depth, or use a store with one home: see [Redis](guides/redis.md#where-the-jobs-are).",
  unknown_option: "Correct the spelling: the message names the nearest option.",
  invalid_definition: "Pass the value that `defineJob` returned, not its options and not its type as a text.",
  invalid_schema: "Register a JSON Schema within the limits of the [registry](guides/schemas.md).",
  invalid_version: "Write a version as the message says, and one that is newer than the last.",
  invalid_workflow:
    "Build it with `step`, `chain`, `group`, `batch` and `graph`: see [Workflows](guides/workflows.md).",
  invalid_saga: "Pass the value that `defineSaga` returned.",
  missing_handler: "Add the handler to `on` or `onTimeout`, or remove the declaration.",
  missing_correlation: "Add the message to `correlate`: a function from the message to the id of its saga.",
  invalid_correlation: "Let `correlate` return a text of 1 to 200 characters.",
  unknown_message: "Declare it in `messages` of the saga, or correct the name.",
  unknown_timeout: "Declare it in `timeouts` of the saga, or correct the name.",
  no_next_state: "Return the next state from each handler, or `saga.complete(state)`.",
  invalid_saga_state: "Return a state that fits `state`, or change the schema and migrate stored states.",
  identity_changed: "Keep the field that holds the correlation value, or name it with `identify`.",
  unknown_undo: "Declare the undo in the definition of the saga, or correct the name.",
  compensating: "Wait until the saga is compensated, or end it: see [Compensation](guides/sagas.md).",
  too_many_pending:
    "Revoke timeouts that are no longer needed, or give repeated ones a `key`, which replaces the last.",
  no_sender: 'Write `{ to: "starter" }` in the handler of a timeout, which has no sender.',
  step_over: "Await everything in the handler before it returns.",
  invalid_payload:
    "Correct the payload at the path that the message names. Answer it with 400 if it came from a request.",
  invalid_result: "Let the handler return what `result` of its definition says.",
  not_json: "Store plain data: no functions, no cycles, no `BigInt`, no class instances without `toJSON`.",
  too_large:
    "Store the data elsewhere and put a reference into the payload, or raise the limit that the message names.",
  invalid_priority: "Use a whole number from -100 (last) to 100 (first).",
  invalid_limit: "Correct the field that the message names: see [Limits](guides/rate-limits.md).",
  unknown_store: "Use `memory:`, `sqlite:`, `postgres:`, `redis:` or `valkey:`, or pass an opened store.",
  not_over_http: "Use an engine on the store for this call, or pass a value that JSON can carry.",
  incompatible_schema:
    "Change the schema as its compatibility allows, or register it under `none`: see [Schemas](guides/schemas.md).",
  known_schema: "Register the next version; a registered one does not change.",
  schema_mismatch: "Correct the arguments, or register a version that accepts them.",
  key_missing: "Give this process the key that the message names: see [Encryption](guides/encryption.md).",
  unsealed:
    "Check that the key with this id is the one that wrote the document, and that nothing changed the row.",
  newer_state: "Deploy the newer version of the saga to this process too.",
  invalid_module: "Export the processor of this definition as the default of the module.",
  load_timeout: "Load less in the module, or raise `load` of the sandbox.",
  closed: "Close the engine last: after the servers and workers that use it.",
  concurrency:
    "Drop the work: the lease ended and another owner has the timeout. Renew leases in time, or ask for longer ones.",
  known_cron: 'Use `ifExists: "keep"`, or leave `ifExists` out to change the cron.',
  known_id: "Use another id, or take it as the reply to a repeated request.",
  not_found: "Check the id and the store; ended jobs are deleted after their retention.",
  duplicate_job: "Nothing, if once is enough: `error.existing` is the job that holds the key.",
  invalid_state: "Load the job: the message names its state and the states that allow the call.",
  store_failed:
    "Retry: the error has the cause. If it stays, see [store_unreachable](guides/operations.md#store_unreachable).",
  server_failed: "Retry with the same id, so that a repeated enqueue adds no second job.",
  server_refused: "Read the message: the key lacks a right, the request is invalid, or a limit is reached.",
  missing_package: "Run the command in the message.",
  unsupported_node: "Use Node 22.14 or newer.",
  result_timeout: "Wait longer, or read the job later by its id: it continues.",
  result_gone: "Give the job a `retention`, or wait for its result from the beginning.",
  job_failed: "Read `error.record`, the last error of the job, and `error.state`.",
  workflow_failed: "Read `error.failure`: the step that failed and its error.",
  tenant_limit: "Retry later, or raise the limit of the tenant: see [Tenants](guides/tenants.md).",
  queue_full: "Retry after `retryAfter`, add workers, or raise `maxDepth`.",
  parent_results_too_large: "Let the steps before return less, or store their results elsewhere.",
  timeout:
    "Raise `attempt` if p99 is near it; if single runs hang, pass `signal` on: see [job.timeout](guides/operations.md#jobtimeout).",
  total_timeout:
    "Remove the cause of the failed attempts, or raise `total`: see [job.total_timeout](guides/operations.md#jobtotal_timeout).",
  enqueue_ttl_expired:
    "Add workers, or raise `wait`: see [job.ttl_expired](guides/operations.md#jobttl_expired).",
  stalled:
    "Call `beat()` more often, or move computation into a sandbox: see [job.stalled](guides/operations.md#jobstalled).",
  visibility_timeout: "Let the remote worker beat, or raise its visibility timeout.",
  killed:
    "Read the stack in the error. If there is none, look for the memory limit and for `process.exit` in the module.",
  shutdown: "Nothing: the attempt is not counted, and another worker runs the job.",
  handler_error: "Read the error of the attempt.",
  discarded_by_handler: "Nothing: the handler decided it.",
  too_many_returns:
    "Let the handler fail instead of snoozing for ever: a job may be released or snoozed 1,000 times.",
  rate_limited: "Raise the limit, or let jobs wait: `onLimit`.",
  cancelled: "Nothing: an operator, a workflow or a caller that gave up cancelled it.",
};
