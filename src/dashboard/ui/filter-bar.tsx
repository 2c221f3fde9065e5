import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useKeys } from "../state/keys.ts";
import { hrefWith, query, setQuery } from "../state/router.ts";
import { Button } from "./button.tsx";
import { Choice, TextField } from "./fields.tsx";
import { Icon } from "./icon.tsx";

/** Something that a list can be filtered by. Its value stands in the URL under its name. */
export interface Filter {
  readonly name: string;
  readonly label: string;
  /** Between name and value: `is`, `in the last`. */
  readonly verb?: string;
  /** What can be chosen; anything may be written where `isFree`. */
  readonly options?: readonly (readonly [value: string, text: string])[];
  readonly isFree?: boolean;
  readonly placeholder?: string;
}

interface FilterBarProps {
  readonly filters: readonly Filter[];
  /** Values to drop whenever a filter changes, such as the cursor of the page. */
  readonly drops?: readonly string[];
  readonly children?: ComponentChildren;
}

/** The filters in force as chips, and a way to add one. All of it is in the URL. */
export function FilterBar({ filters, drops = ["cursor", "page", "before"], children }: FilterBarProps) {
  const [edited, setEdited] = useState<string | null>(null);
  const dropped = Object.fromEntries(drops.map((name) => [name, null]));
  const inForce = filters.filter(({ name }) => query.value.has(name));
  const free = filters.filter(({ name }) => !query.value.has(name));
  const first = free[0]?.name;
  useKeys([{ keys: "f", says: "Add a filter", run: () => first && setEdited(first) }]);
  return (
    <search class="filters" aria-label="Filters">
      {inForce.map((filter) => {
        const value = query.value.get(filter.name) ?? "";
        const text = filter.options?.find(([one]) => one === value)?.[1] ?? value;
        return (
          <span class="chip" key={filter.name}>
            <span class="k">{filter.label}</span>
            <span class="op">{filter.verb ?? "is"}</span>
            <button type="button" class="v clip" title={text} onClick={() => setEdited(filter.name)}>
              {text}
            </button>
            <a
              class="x"
              href={hrefWith({ ...dropped, [filter.name]: null })}
              aria-label={`Remove the filter ${filter.label}`}
            >
              <Icon name="x" small />
            </a>
          </span>
        );
      })}
      <span class="pop">
        {first && (
          <button
            type="button"
            class="chip add"
            aria-expanded={edited !== null}
            onClick={() => setEdited(edited ? null : first)}
          >
            <span>
              <Icon name="plus" small /> Filter <kbd class="hide-s">f</kbd>
            </span>
          </button>
        )}
        {edited && (
          <FilterForm
            key={edited}
            filters={filters}
            start={edited}
            onClose={() => setEdited(null)}
            onSet={(name, value) => {
              setEdited(null);
              setQuery({ ...dropped, [name]: value });
            }}
          />
        )}
      </span>
      {inForce.length > 0 && (
        <a
          class="btn ghost small"
          href={hrefWith({ ...dropped, ...Object.fromEntries(filters.map(({ name }) => [name, null])) })}
        >
          Clear
        </a>
      )}
      {children && <span class="push rowf">{children}</span>}
    </search>
  );
}

interface FilterFormProps {
  readonly filters: readonly Filter[];
  readonly start: string;
  readonly onClose: () => void;
  readonly onSet: (name: string, value: string) => void;
}

function FilterForm({ filters, start, onClose, onSet }: FilterFormProps) {
  const [name, setName] = useState(start);
  const [value, setValue] = useState(query.value.get(start) ?? "");
  const form = useRef<HTMLFormElement>(null);
  const filter = filters.find((one) => one.name === name);
  const isClosed = filter?.options && !filter.isFree;
  useEffect(() => {
    form.current?.querySelector<HTMLElement>(isClosed ? "label:last-of-type select" : "input")?.focus();
    const leave = (event: MouseEvent) => {
      if (!form.current?.contains(event.target as Node)) onClose();
    };
    addEventListener("mousedown", leave);
    return () => removeEventListener("mousedown", leave);
  }, [isClosed, onClose]);
  return (
    <form
      ref={form}
      class="popover"
      onKeyDown={(event) => {
        if (event.key === "Escape") onClose();
      }}
      onSubmit={(event) => {
        event.preventDefault();
        onSet(name, value.trim() || (isClosed ? (filter?.options?.[0]?.[0] ?? "") : ""));
      }}
    >
      <Choice
        label="Filter by"
        value={name}
        options={filters.map((one) => [one.name, one.label])}
        onChange={(next) => {
          setName(next);
          setValue(query.value.get(next) ?? "");
        }}
      />
      {isClosed ? (
        <Choice
          label={filter.verb ?? "is"}
          value={value}
          options={filter.options ?? []}
          onChange={setValue}
        />
      ) : (
        <TextField
          label={filter?.verb ?? "is"}
          value={value}
          onInput={setValue}
          {...(filter?.placeholder !== undefined && { placeholder: filter.placeholder })}
          {...(filter?.options && { options: filter.options.map(([one]) => one) })}
        />
      )}
      <Button kind="primary" submit>
        Apply
      </Button>
    </form>
  );
}
