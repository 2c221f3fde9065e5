/** For the dashboard, which says cron expressions in words. */
export { CRON_SHORTHANDS } from "../core/cron/shorthands.ts";
