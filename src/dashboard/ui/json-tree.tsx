import { useState } from "preact/hooks";
import { Button, CopyButton } from "./button.tsx";

/** Rows that are shown at once of one list or object; the rest on demand. */
const STEP = 100;
/** Longer texts are cut until somebody asks. */
const LONG = 600;
const OPEN_DEPTH = 2;
/** What the server writes where a definition says that a value is secret. */
const REDACTED = "[redacted]";

/** A value as a tree. All of it is text: nothing in it is ever taken for markup. */
export function JsonTree({ value, what }: { readonly value: unknown; readonly what: string }) {
  const key = keyOfSealed(value);
  if (key !== undefined)
    return (
      <p class="t2">
        Encrypted with the key <b>{key}</b>. Only processes that have it can read this.
      </p>
    );
  return (
    <div class="tree code">
      <span class="tree-copy">
        <CopyButton text={JSON.stringify(value, null, 2) ?? "undefined"} what={what} />
      </span>
      <div>
        <Node value={value} depth={0} />
      </div>
    </div>
  );
}

/** The name of the key of an encrypted document; undefined for a plain one. */
function keyOfSealed(value: unknown): string | undefined {
  // A job of one argument is shown as its list.
  const document = Array.isArray(value) && value.length === 1 ? value[0] : value;
  if (typeof document !== "object" || document === null) return undefined;
  const key = (document as { readonly [name: string]: unknown })["$curfew.sealed"];
  return typeof key === "string" ? key : undefined;
}

interface NodeProps {
  readonly name?: string;
  readonly value: unknown;
  readonly depth: number;
}

function Node({ name, value, depth }: NodeProps) {
  if (value === null || typeof value !== "object")
    return (
      <div class="leaf">
        {name !== undefined && <span class="k">{name}: </span>}
        <Leaf value={value} />
      </div>
    );
  const isList = Array.isArray(value);
  const entries: [string, unknown][] = isList
    ? value.map((one, index) => [String(index), one])
    : Object.entries(value);
  const [open, close] = isList ? ["[", "]"] : ["{", "}"];
  const size = `${open}${entries.length === 0 ? "" : ` ${entries.length} `}${close}`;
  if (entries.length === 0)
    return (
      <div class="leaf">
        {name !== undefined && <span class="k">{name}: </span>}
        <span class="c">{size}</span>
      </div>
    );
  return (
    <details open={depth < OPEN_DEPTH && entries.length <= STEP}>
      <summary>
        {name !== undefined && <span class="k">{name}</span>}
        <span class="c">{size}</span>
      </summary>
      <Entries entries={entries} depth={depth + 1} />
    </details>
  );
}

function Entries({
  entries,
  depth,
}: {
  readonly entries: readonly [string, unknown][];
  readonly depth: number;
}) {
  const [shown, setShown] = useState(STEP);
  return (
    <div>
      {entries.slice(0, shown).map(([name, value]) => (
        <Node key={name} name={name} value={value} depth={depth} />
      ))}
      {entries.length > shown && (
        <Button small kind="ghost" onClick={() => setShown(shown + STEP)}>
          {`${entries.length - shown} more`}
        </Button>
      )}
    </div>
  );
}

function Leaf({ value }: { readonly value: unknown }) {
  const [isWhole, setWhole] = useState(false);
  if (value === REDACTED) return <span class="red">redacted</span>;
  if (typeof value !== "string") return <span class="nn">{String(value)}</span>;
  const text = JSON.stringify(value);
  if (text.length <= LONG || isWhole) return <span class="s">{text}</span>;
  return (
    <>
      <span class="s">{text.slice(0, LONG)}…</span>{" "}
      <button type="button" class="link" onClick={() => setWhole(true)}>
        all {text.length} characters
      </button>
    </>
  );
}
