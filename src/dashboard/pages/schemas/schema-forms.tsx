import { useState } from "preact/hooks";
import type { JobSchema, SchemaCheck, SchemaSummary } from "../../../ojs/replies/settings-replies.ts";
import { checkSchema, configureSchema, deleteSchema, publishSchema } from "../../api/settings.ts";
import { ActionForm } from "../../ui/action-form.tsx";
import { Button } from "../../ui/button.tsx";
import { Callout } from "../../ui/callout.tsx";
import { Choice, TextArea, TextField } from "../../ui/fields.tsx";
import type { FormEnd } from "../../ui/use-form.ts";
import { COMPATIBILITIES, VALIDATIONS } from "./schema-words.ts";

const EXAMPLE = `{
  "type": "array",
  "prefixItems": [
    {
      "type": "object",
      "properties": { "cents": { "type": "integer", "minimum": 1 } },
      "required": ["cents"]
    }
  ],
  "minItems": 1
}`;

/** An object, or why the text is none. */
function readObject(text: string): { readonly value?: object; readonly error?: string } {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { value };
    return { error: "A schema is an object: { … }." };
  } catch (error) {
    return { error: `This is not JSON: ${(error as Error).message}` };
  }
}

interface PublishProps {
  /** Of the type that gets a new version; left out: a type is asked for. */
  readonly schema?: JobSchema;
  readonly onClose: () => void;
  readonly onDone: (made: JobSchema) => void;
}

/** Publishes a version. What it would break is asked first, without storing anything. */
export function PublishForm({ schema, ...end }: PublishProps) {
  const [type, setType] = useState(schema?.type ?? "");
  const [text, setText] = useState(() => (schema ? JSON.stringify(schema.schema, null, 2) : EXAMPLE));
  const [check, setCheck] = useState<SchemaCheck | string>();
  const { value, error } = readObject(text);
  const compare = async () => {
    if (!value) return;
    const result = await checkSchema(type, value);
    setCheck(result.ok ? result.data : result.error.message);
  };
  return (
    <ActionForm
      title={schema ? `A new version of ${schema.type}` : "Publish a schema"}
      action="Publish it"
      blocked={type.trim() === "" ? "Name the type." : error}
      act={(reason) => publishSchema(type.trim(), value ?? {}, reason)}
      said={({ version }) => `Version ${String(version)} of ${type} holds from now on.`}
      {...end}
    >
      {!schema && (
        <TextField label="Type" value={type} onInput={setType} isMono isFirst placeholder="card.charge" />
      )}
      <TextArea
        label="JSON Schema of args"
        value={text}
        onInput={(next) => {
          setText(next);
          setCheck(undefined);
        }}
        rows={12}
        error={error}
      />
      {schema && (
        <div class="rowf">
          <Button small onClick={() => void compare()}>
            What would it break?
          </Button>
        </div>
      )}
      {check !== undefined && <Checked check={check} fits="It fits the version before it." />}
    </ActionForm>
  );
}

/** What a comparison or a check of arguments said. */
export function Checked({ check, fits }: { readonly check: SchemaCheck | string; readonly fits: string }) {
  if (typeof check === "string") return <Callout tone="soft">{check}</Callout>;
  if (check.reasons.length === 0) return <Callout tone="done">{fits}</Callout>;
  return (
    <Callout tone="soft">
      <ul class="grow">
        {check.reasons.map((reason) => (
          <li key={reason} class="anywhere">
            {reason}
          </li>
        ))}
      </ul>
    </Callout>
  );
}

interface RulesProps extends FormEnd {
  readonly schema: SchemaSummary;
}

export function RulesForm({ schema, ...end }: RulesProps) {
  const [validation, setValidation] = useState<string>(schema.validation);
  const [compatibility, setCompatibility] = useState<string>(schema.compatibility);
  const isSame = validation === schema.validation && compatibility === schema.compatibility;
  return (
    <ActionForm
      title={`Rules of ${schema.type}`}
      action="Set the rules"
      blocked={isSame ? "Nothing is changed." : undefined}
      act={(reason) => configureSchema(schema.type, { validation, compatibility }, reason)}
      said={`${schema.type} has new rules.`}
      {...end}
    >
      <Choice
        label="It checks"
        value={validation}
        options={Object.entries(VALIDATIONS)}
        onChange={setValidation}
      />
      <Choice
        label="The next version must be"
        value={compatibility}
        options={Object.entries(COMPATIBILITIES).map(([name, words]) => [name, `${name}: ${words}`])}
        onChange={setCompatibility}
      />
    </ActionForm>
  );
}

interface DeleteProps extends FormEnd {
  readonly schema: JobSchema;
  readonly isLast: boolean;
}

export function DeleteForm({ schema, isLast, ...end }: DeleteProps) {
  const version = String(schema.version);
  return (
    <ActionForm
      title={`Delete version ${version} of ${schema.type}`}
      action="Delete the version"
      isDanger
      act={(reason) => deleteSchema(schema.type, schema.version, reason)}
      said={`Version ${version} is deleted.`}
      does={
        isLast
          ? "It is the only version: jobs of the type are no longer checked."
          : "Jobs that name this version are refused from now on. Stored jobs stay as they are."
      }
      {...end}
    />
  );
}
