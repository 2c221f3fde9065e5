import { useState } from "preact/hooks";
import { useResource } from "../../api/resource.ts";
import { readSchemas } from "../../api/settings.ts";
import type { Page as PageOf } from "../../api/wire.ts";
import type { SchemaSummary } from "../../api/wire-settings.ts";
import { go, href, query } from "../../state/router.ts";
import { whyNot } from "../../state/session.ts";
import { Button } from "../../ui/button.tsx";
import { Empty } from "../../ui/callout.tsx";
import { PageHead } from "../../ui/card.tsx";
import { Pager } from "../../ui/pager.tsx";
import { Commands, Shown } from "../../ui/shown.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { PublishForm } from "./schema-forms.tsx";
import { checkedWords, compatibleWords } from "./schema-words.ts";

/** What the payloads of each type must look like, from every producer. */
export function Page() {
  const cursor = query.value.get("cursor");
  const [isNew, setNew] = useState(false);
  const schemas = useResource(`schemas ${cursor}`, (signal) => readSchemas(cursor, signal), { live: 15_000 });
  return (
    <>
      <PageHead
        title="Schemas"
        below="What jobs of a type must carry. One that does not fit is refused before it is stored."
      >
        <Button icon="plus" whyNot={whyNot("operate")} onClick={() => setNew(true)}>
          Publish a schema…
        </Button>
      </PageHead>
      <Shown of={schemas} what="The list" offers="schemas">
        {(page) => <List page={page} />}
      </Shown>
      {isNew && (
        <PublishForm
          onClose={() => setNew(false)}
          onDone={({ type }) => {
            setNew(false);
            go(schemaHref(type));
          }}
        />
      )}
    </>
  );
}

const schemaHref = (type: string) => href(`schemas/${encodeURIComponent(type)}`);

function List({ page: { items, pagination } }: { readonly page: PageOf<SchemaSummary> }) {
  if (items.length === 0)
    return (
      <div class="tablewrap">
        <Empty icon="schemas" title="No type has a schema">
          <p>Register the schemas of your definitions, and every producer is held to them:</p>
          <Commands lines={["curfew schemas publish ./jobs.ts"]} />
        </Empty>
      </div>
    );
  return (
    <>
      <Table
        label="Schemas"
        rows={items}
        columns={COLUMNS}
        idOf={({ type }) => type}
        hrefOf={({ type }) => schemaHref(type)}
      />
      <Pager shown={items.length} next={pagination.next_cursor} />
    </>
  );
}

const COLUMNS: readonly Column<SchemaSummary>[] = [
  {
    id: "type",
    title: "Type",
    phone: "title",
    class: "c-name",
    render: ({ type }) => (
      <a class="name clip" href={schemaHref(type)} title={type}>
        {type}
      </a>
    ),
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
