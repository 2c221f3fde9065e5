import { z } from "zod";
import { EXPORT_VERSION, type JobLine } from "../../core/job/transfer/job-line.ts";
import { readExportLine, writeExportLine, writeLineMessage } from "../../ojs/export-line.ts";
import type { Identity } from "../access/auth.ts";
import { ROLES } from "../access/roles.ts";
import { HttpError } from "../http/http-error.ts";
import { byKey, json, type Route, routesOf } from "../route.ts";
import { exportQuery, importSchema } from "../wire/admin-schemas.ts";
import { readFilter } from "../wire/filter.ts";
import { limited } from "../wire/job-page.ts";

const route = routesOf({ tag: "admin", scope: "tenant" });
const count = z.int().min(0);

const exportReply = z
  .looseObject({
    version: z.literal(EXPORT_VERSION),
    lines: z.array(z.looseObject({ kind: z.enum(["job", "unique"]) })),
    next_cursor: z.string().nullable(),
    left_out: z.looseObject({ running: count, workflow: count, importing: count }),
  })
  .meta({
    id: "ExportPage",
    description: "Lines that an import takes; docs/guides/moving-jobs.md says what is in them.",
  });

/** A line has everything, or an import would lose it: jobs with redacted fields are for admins. */
function refuseHidden(lines: readonly object[], { name, role }: Identity): void {
  if (ROLES[role].includes("operate")) return;
  const hidden = lines.find((line) => (line as JobLine).options?.redact !== undefined) as JobLine | undefined;
  if (hidden === undefined) return;
  const message = `The key of ${name} has the role ${role}, and job ${hidden.id} has redacted fields: export it with the role admin, or leave out the type ${hidden.type}`;
  throw new HttpError(403, "forbidden", message, { details: { role, needs: "operate" } });
}

const exportJobs = route("GET", "/ojs/v1/admin/export", "read", {
  summary: "Export jobs as lines that another store can import",
  reply: exportReply,
  query: exportQuery,
  replies: { 200: "A page of lines; it may be short and still not be the last" },
  async run({ query, identity }, { engine }) {
    const { cursor, per_page, ended } = query;
    const {
      lines,
      cursor: next,
      leftOut,
    } = await limited(() =>
      engine.exportJobs(readFilter(query, engine.now()), {
        after: cursor || null,
        limit: per_page ?? 100,
        ended: ended ?? false,
      }),
    );
    refuseHidden(lines, identity);
    return json(200, {
      version: EXPORT_VERSION,
      lines: lines.map(writeExportLine),
      next_cursor: next,
      left_out: leftOut,
    });
  },
});

const importReply = z
  .looseObject({
    dry_run: z.boolean(),
    results: z.array(
      z.looseObject({
        status: z.enum(["created", "exists", "duplicate", "invalid"]),
        id: z.string().nullable(),
        message: z.string().optional(),
      }),
    ),
  })
  .meta({ id: "ImportResult", description: "What became of each line, in the order of the lines." });

const importJobs = route("POST", "/ojs/v1/admin/import", "operate", {
  summary: "Store lines of an export; known ids stay as they are, so it can be repeated",
  reply: importReply,
  body: importSchema,
  replies: { 200: "What became of each line" },
  async run({ body, identity }, { engine }) {
    const dryRun = body.dry_run === true;
    // It reads the jobs that the lines name, and they may be large.
    const imported = await limited(() =>
      engine.importJobs(body.lines.map(readExportLine), { dryRun, by: byKey(identity) }),
    );
    const results = imported.map(({ message, ...rest }) =>
      message === undefined ? rest : { ...rest, message: writeLineMessage(message) },
    );
    return json(200, { dry_run: dryRun, results });
  },
});

export const adminTransferRoutes: readonly Route[] = [exportJobs, importJobs];
