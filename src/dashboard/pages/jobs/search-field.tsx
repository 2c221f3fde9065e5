import { useEffect, useState } from "preact/hooks";
import { query, setQuery } from "../../state/router.ts";
import { Icon } from "../../ui/icon.tsx";

/** Finds jobs by their id, its beginning, or a text in their payload. It stands in the URL like every filter. */
export function SearchField() {
  const asked = query.value.get("search") ?? "";
  const [text, setText] = useState(asked);
  useEffect(() => setText(asked), [asked]);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    setQuery({ search: text.trim() || null, cursor: null });
  };
  return (
    <form class="find" onSubmit={submit}>
      <Icon name="search" small />
      <input
        type="search"
        aria-label="Search by id or payload"
        placeholder="id, or a text in the payload"
        maxLength={512}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
    </form>
  );
}
