import { areSingleKeysOn, keyActions } from "../state/keys.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { close } from "./shell-keys.tsx";

const SHOWN: Readonly<Record<string, string>> = { Escape: "Esc" };

/** All keys that are in force now: those of the page, then those of every page. */
export function KeyHelp() {
  const seen = new Set<string>();
  const actions = keyActions.value.filter(({ keys }) => !seen.has(keys) && seen.add(keys));
  return (
    <Dialog title="Keys" onClose={close} class="keys">
      <div class="in">
        <dl class="keylist">
          {actions.map(({ keys, says }) => (
            <div key={keys}>
              <dt>
                {keys.split(/[ +]/).map((key) => (
                  <kbd key={key}>{SHOWN[key] ?? key}</kbd>
                ))}
              </dt>
              <dd>{says}</dd>
            </div>
          ))}
        </dl>
      </div>
      <footer>
        <label class="check push-r">
          <input
            type="checkbox"
            checked={areSingleKeysOn.value}
            onChange={(event) => {
              areSingleKeysOn.value = event.currentTarget.checked;
            }}
          />
          Single keys
        </label>
        <Button onClick={close}>Close</Button>
      </footer>
    </Dialog>
  );
}
