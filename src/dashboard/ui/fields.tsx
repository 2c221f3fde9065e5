import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly hint?: ComponentChildren;
  readonly error?: string | undefined;
  readonly placeholder?: string;
  readonly isMono?: boolean;
  readonly isFirst?: boolean;
  readonly type?: "text" | "password" | "number" | "search";
  readonly options?: readonly string[];
  readonly max?: number;
  readonly class?: string;
}

export function TextField(props: FieldProps) {
  const {
    label,
    value,
    onInput,
    hint,
    error,
    placeholder,
    isMono,
    isFirst,
    type = "text",
    options,
    max,
    class: more = "",
  } = props;
  const id = useId();
  return (
    <label class={`f ${more}`}>
      {label}
      <input
        class={isMono ? "t mono" : "t"}
        type={type as "text"}
        value={value}
        placeholder={placeholder}
        maxLength={max}
        // The first field of a form that the viewer has just opened.
        autofocus={isFirst}
        autocomplete="off"
        spellcheck={false}
        {...(options && { list: `${id}-options` })}
        aria-invalid={error !== undefined}
        aria-describedby={error || hint ? `${id}-hint` : undefined}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      {options && (
        <datalist id={`${id}-options`}>
          {options.map((option) => (
            <option key={option} value={option} />
          ))}
        </datalist>
      )}
      {(error || hint) && (
        <small id={`${id}-hint`} class={error ? "is-force bad" : undefined}>
          {error ?? hint}
        </small>
      )}
    </label>
  );
}

export function TextArea({
  label,
  value,
  onInput,
  error,
  rows = 8,
}: FieldProps & { readonly rows?: number }) {
  const id = useId();
  return (
    <label class="f">
      {label}
      <textarea
        class="t mono"
        rows={rows}
        value={value}
        spellcheck={false}
        aria-invalid={error !== undefined}
        aria-describedby={error ? `${id}-hint` : undefined}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      {error && (
        <small id={`${id}-hint`} class="is-force bad">
          {error}
        </small>
      )}
    </label>
  );
}

export function Choice({
  label,
  value,
  options,
  onChange,
}: {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly onChange: (value: string) => void;
}) {
  return (
    <label class="f">
      {label}
      <select class="t" value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Asked for with every change that is entered in the audit. */
export function ReasonField({ value, onInput }: Pick<FieldProps, "value" | "onInput">) {
  return (
    <TextField
      label="Reason, for the audit"
      value={value}
      onInput={onInput}
      max={500}
      placeholder="What somebody who reads the audit should know"
    />
  );
}
