import type { RecordKey } from "../ports/store.ts";
import { CALENDAR_REVISION, REVISION_NAME } from "./calendars/calendar-cache.ts";
import { EVENTS_SETTING } from "./events/event-journal.ts";
import { MAINTENANCE, MAINTENANCE_NAME } from "./queues/maintenance-record.ts";
import { QUEUE_REVISION, QUEUE_REVISION_NAME } from "./queues/queue-settings-cache.ts";
import { ALL_TYPES, SCHEMA_INDEX } from "./schemas/schema-records.ts";

/** The records that change with any setting that processes cache. */
export const SETTINGS: readonly RecordKey[] = [
  QUEUE_REVISION.key(QUEUE_REVISION_NAME),
  MAINTENANCE.key(MAINTENANCE_NAME),
  SCHEMA_INDEX.key(ALL_TYPES),
  CALENDAR_REVISION.key(REVISION_NAME),
  EVENTS_SETTING,
];
