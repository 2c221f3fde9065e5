import type { ComponentChildren } from "preact";
import { useKeys } from "../state/keys.ts";
import { Button } from "./button.tsx";
import { plural } from "./format.ts";

/** What can be done to the rows that are ticked; it floats above the list while any are. */
export function BulkBar({
  count,
  note,
  onClear,
  children,
}: {
  readonly count: number;
  readonly note?: ComponentChildren;
  readonly onClear: () => void;
  readonly children: ComponentChildren;
}) {
  useKeys([{ keys: "Escape", says: "Clear the selection", run: onClear }]);
  if (count === 0) return null;
  return (
    <section class="bulk" aria-label="Selected rows">
      <b>{plural(count, "selected", "selected")}</b>
      {note}
      <span class="rule" />
      {children}
      <Button small kind="ghost" icon="x" label="Clear the selection" onClick={onClear} />
    </section>
  );
}
