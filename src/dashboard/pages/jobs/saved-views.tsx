import { useState } from "preact/hooks";
import { base, href, place } from "../../state/router.ts";
import { stored } from "../../state/storage.ts";
import { ActionDialog } from "../../ui/dialog.tsx";
import { TextField } from "../../ui/fields.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Menu } from "../../ui/menu.tsx";

/** A filter under a name. It is kept in this browser alone; a link is the way to give it to others. */
interface View {
  readonly name: string;
  readonly search: string;
}

const MOST = 20;

const isViews = (value: unknown): value is readonly View[] =>
  Array.isArray(value) &&
  value.every((one) => typeof one?.name === "string" && typeof one?.search === "string");

const views = stored<readonly View[]>(`views ${base}`, [], isViews);

/** The query without what is only a place in the list. */
function currentSearch(): string {
  const parameters = new URLSearchParams(place.value.query);
  parameters.delete("cursor");
  parameters.sort();
  return parameters.toString();
}

export function SavedViews() {
  const [isOpen, setOpen] = useState(false);
  const [isNaming, setNaming] = useState(false);
  const current = views.value.find(({ search }) => search === currentSearch());
  const remove = () => {
    views.value = views.value.filter((one) => one !== current);
  };
  return (
    <>
      <Menu
        label="Saved views"
        icon="star"
        text={current?.name ?? "Views"}
        isOpen={isOpen}
        onToggle={setOpen}
      >
        {views.value.length === 0 && <p>No views yet. Choose filters, then save them under a name.</p>}
        {views.value.map(({ name, search }) => (
          <a key={name} href={href(`jobs?${search}`)}>
            <Icon name={search === current?.search ? "check" : "star"} small />
            <span class="clip">{name}</span>
          </a>
        ))}
        {!current && currentSearch() !== "" && (
          <button type="button" onClick={() => setNaming(true)}>
            <Icon name="plus" small /> Save this view…
          </button>
        )}
        {current && (
          <button type="button" onClick={remove}>
            <Icon name="x" small /> Forget this view
          </button>
        )}
      </Menu>
      {isNaming && <NameForm onClose={() => setNaming(false)} />}
    </>
  );
}

function NameForm({ onClose }: { readonly onClose: () => void }) {
  const [name, setName] = useState("");
  const save = () => {
    const made = { name: name.trim(), search: currentSearch() };
    views.value = [...views.value.filter((one) => one.name !== made.name), made].slice(-MOST);
    onClose();
  };
  return (
    <ActionDialog
      title="Save this view"
      action="Save"
      whyNot={name.trim() === "" ? "Write a name first." : undefined}
      onAct={save}
      onClose={onClose}
    >
      <TextField
        label="Name"
        isFirst
        value={name}
        onInput={setName}
        max={60}
        placeholder="Billing and reports"
        hint="It is kept in this browser. To give it to somebody, copy the link."
      />
    </ActionDialog>
  );
}
