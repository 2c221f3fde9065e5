import { useState } from "preact/hooks";
import type { JobSchema, SchemaCheck, SchemaSummary } from "../../../ojs/replies/settings-replies.ts";
import { useResource } from "../../api/resource.ts";
import { checkArgs, readSchema, readVersions } from "../../api/settings.ts";
import { go, href, hrefWith, query } from "../../state/router.ts";
import { whyNot } from "../../state/session.ts";
import { Tag } from "../../ui/badge.tsx";
import { Button, LinkButton } from "../../ui/button.tsx";
import { Card, Crumb, Facts, PageHead } from "../../ui/card.tsx";
import { TextArea } from "../../ui/fields.tsx";
import { plural } from "../../ui/format.ts";
import { JsonTree } from "../../ui/json-tree.tsx";
import { Shown } from "../../ui/shown.tsx";
import { Time } from "../../ui/time.tsx";
import { useForm } from "../../ui/use-form.ts";
import { Checked, DeleteForm, PublishForm, RulesForm } from "../schemas/schema-forms.tsx";
import { checkedWords, compatibleWords, fieldsOf } from "../schemas/schema-words.ts";

export function Page({ params }: { readonly params: Readonly<Record<string, string>> }) {
  const type = params.type ?? "";
  const versions = useResource(`schema versions ${type}`, (signal) => readVersions(type, signal), {
    live: 15_000,
  });
  return (
    <Shown of={versions} what={`The schema of ${type}`}>
      {(summary) => <Details summary={summary} onChange={versions.reload} />}
    </Shown>
  );
}

type FormName = "publish" | "rules" | "delete";

function Details({ summary, onChange }: { readonly summary: SchemaSummary; readonly onChange: () => void }) {
  const { type, versions } = summary;
  const asked = query.value.get("version");
  const version = versions.find((one) => String(one) === asked) ?? summary.version;
  const schema = useResource(`schema ${type} ${version}`, (signal) =>
    readSchema(type, String(version), signal),
  );
  const { form, open, end } = useForm<FormName>(onChange);
  return (
    <>
      <Head summary={summary} onForm={open} />
      <Shown of={schema} what="The schema">
        {(data) => (
          <>
            <div class="pair">
              <About summary={summary} schema={data} onDelete={() => open("delete")} />
              <TryOut schema={data} />
            </div>
            <FieldTable schema={data} />
            <Card title="The schema itself" note={data.uri}>
              <div class="pad">
                <JsonTree value={data.schema} what="the schema" />
              </div>
            </Card>
            {form === "publish" && (
              <PublishForm
                schema={data}
                onClose={end.onClose}
                onDone={({ version: made }) => {
                  end.onDone();
                  go(hrefWith({ version: String(made) }));
                }}
              />
            )}
            {form === "delete" && (
              <DeleteForm
                schema={data}
                isLast={versions.length === 1}
                onClose={end.onClose}
                onDone={() => (versions.length === 1 ? go(href("schemas")) : end.onDone())}
              />
            )}
          </>
        )}
      </Shown>
      {form === "rules" && <RulesForm schema={summary} {...end} />}
    </>
  );
}

function Head({
  summary,
  onForm,
}: {
  readonly summary: SchemaSummary;
  readonly onForm: (form: FormName) => void;
}) {
  const why = whyNot("operate");
  return (
    <PageHead
      title={summary.type}
      tab={`Schema of ${summary.type}`}
      above={<Crumb href={href("schemas")}>Schemas</Crumb>}
      below={`${plural(summary.versions.length, "version")}. It checks ${checkedWords(summary)}.`}
    >
      <Button kind="primary" icon="plus" whyNot={why} onClick={() => onForm("publish")}>
        New version…
      </Button>
      <Button whyNot={why} onClick={() => onForm("rules")}>
        Rules…
      </Button>
      <LinkButton href={href("jobs", { type: summary.type })} icon="jobs">
        Jobs
      </LinkButton>
    </PageHead>
  );
}

interface AboutProps {
  readonly summary: SchemaSummary;
  readonly schema: JobSchema;
  readonly onDelete: () => void;
}

function About({ summary, schema, onDelete }: AboutProps) {
  const newestFirst = summary.versions.toReversed();
  return (
    <Card
      title={`Version ${String(schema.version)}`}
      aside={
        <Button small kind="danger" whyNot={whyNot("operate")} onClick={onDelete}>
          Delete…
        </Button>
      }
    >
      <div class="pad">
        <Facts
          of={[
            ["Registered", <Time key="t" at={schema.created_at} as="when" />],
            ["Checks", checkedWords(summary)],
            ["The next one", `${summary.compatibility}: ${compatibleWords(summary)}`],
            [
              "Versions",
              <nav key="v" class="tags" aria-label="Versions">
                {newestFirst.map((one) => (
                  <a
                    key={String(one)}
                    class="tag"
                    href={hrefWith({ version: String(one) })}
                    aria-current={one === schema.version ? "page" : undefined}
                  >
                    {String(one)}
                  </a>
                ))}
              </nav>,
            ],
          ]}
        />
      </div>
    </Card>
  );
}

/** Would a job with these arguments be taken? Nothing is stored. */
function TryOut({ schema }: { readonly schema: JobSchema }) {
  const [text, setText] = useState("[\n  {}\n]");
  const [check, setCheck] = useState<SchemaCheck | string>();
  const run = async () => {
    let args: unknown;
    try {
      args = JSON.parse(text);
    } catch (error) {
      return setCheck(`This is not JSON: ${(error as Error).message}`);
    }
    const result = await checkArgs(schema.type, schema.version, Array.isArray(args) ? args : [args]);
    setCheck(result.ok ? result.data : result.error.message);
  };
  return (
    <Card title="Would it be taken?">
      <form
        class="pad stack-gap"
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <TextArea
          label="Arguments of a job, as JSON"
          value={text}
          onInput={(next) => {
            setText(next);
            setCheck(undefined);
          }}
          rows={5}
        />
        <div class="rowf">
          <Button submit>Check them</Button>
          <span class="t3">Nothing is stored.</span>
        </div>
        {check !== undefined && <Checked check={check} fits="A job with these arguments is taken." />}
      </form>
    </Card>
  );
}

function FieldTable({ schema }: { readonly schema: JobSchema }) {
  const fields = fieldsOf(schema.schema);
  if (fields.length === 0) return null;
  return (
    <Card title="What jobs carry" note={plural(fields.length, "field")}>
      <table class="stackable" aria-label="Fields">
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Is</th>
            <th scope="col">Required</th>
          </tr>
        </thead>
        <tbody>
          {fields.map(({ path, is, isRequired, about }) => (
            <tr key={path}>
              <td class="ph-title">
                <span class="two">
                  <code class="anywhere">{path}</code>
                  {about !== "" && <small class="anywhere">{about}</small>}
                </span>
              </td>
              <td class="ph-line anywhere">{is}</td>
              <td class="ph-side">
                {isRequired ? <Tag>required</Tag> : <span class="t3">may be left out</span>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}
