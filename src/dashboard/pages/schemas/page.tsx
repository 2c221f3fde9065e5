import type { SchemaSummary } from "../../../ojs/replies/settings-replies.ts";
import type { Page as PageOf } from "../../../ojs/replies/wire-replies.ts";
import { usePage } from "../../api/resource.ts";
import { readSchemas } from "../../api/settings.ts";
import { go, href } from "../../state/router.ts";
import { Empty } from "../../ui/callout.tsx";
import { ListPage } from "../../ui/list-page.tsx";
import { PagedTable } from "../../ui/paged-table.tsx";
import { Commands } from "../../ui/shown.tsx";
import { type Column, NAME_COLUMN, NameLink } from "../../ui/table.tsx";
import { PublishForm } from "./schema-forms.tsx";
import { checkedWords, compatibleWords } from "./schema-words.ts";

/** What the payloads of each type must look like, from every producer. */
export function Page() {
  const schemas = usePage("schemas", readSchemas, 15_000);
  return (
    <ListPage
      title="Schemas"
      below="What jobs of a type must carry. One that does not fit is refused before it is stored."
      of={schemas}
      offers="schemas"
      action="Publish a schema…"
      form={({ onClose }) => <PublishForm onClose={onClose} onDone={({ type }) => go(schemaHref(type))} />}
    >
      {(page) => <List page={page} />}
    </ListPage>
  );
}

const schemaHref = (type: string) => href(`schemas/${encodeURIComponent(type)}`);

function List({ page }: { readonly page: PageOf<SchemaSummary> }) {
  return (
    <PagedTable
      label="Schemas"
      page={page}
      columns={COLUMNS}
      idOf={({ type }) => type}
      hrefOf={({ type }) => schemaHref(type)}
      empty={
        <Empty icon="schemas" title="No type has a schema">
          <p>Register the schemas of your definitions, and every producer is held to them:</p>
          <Commands lines={["curfew schemas publish ./jobs.ts"]} />
        </Empty>
      }
    />
  );
}

const COLUMNS: readonly Column<SchemaSummary>[] = [
  {
    id: "type",
    title: "Type",
    ...NAME_COLUMN,
    render: ({ type }) => <NameLink href={schemaHref(type)}>{type}</NameLink>,
  },
  {
    id: "newest",
    title: "Newest",
    phone: "side",
    render: ({ version }) => <span class="tag">version {String(version)}</span>,
  },
  { id: "versions", title: "Versions", isNumber: true, render: ({ versions }) => versions.length },
  { id: "checked", title: "Checks", class: "t2", render: checkedWords },
  {
    id: "compatible",
    title: "The next version",
    class: "t2",
    phone: "hide",
    render: (schema) => (
      <>
        {schema.compatibility}: {compatibleWords(schema)}
      </>
    ),
  },
  {
    id: "jobs",
    title: <span class="sr">Jobs</span>,
    phone: "hide",
    class: "c-actions",
    render: ({ type }) => (
      <a class="btn small" href={href("jobs", { type })}>
        Jobs
      </a>
    ),
  },
];
