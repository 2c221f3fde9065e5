import { useEffect, useId, useRef, useState } from "preact/hooks";
import { PAGES } from "../pages.ts";
import { areSingleKeysOn, keyActions } from "../state/keys.ts";
import { figures } from "../state/live.ts";
import { go, href } from "../state/router.ts";
import { logOut, visit } from "../state/session.ts";
import { nextTheme, theme } from "../state/theme.ts";
import type { IconName } from "../ui/drawings.ts";
import { Icon } from "../ui/icon.tsx";
import { isOffered } from "./offered.ts";
import { close, openedLayer } from "./shell-keys.tsx";

interface Command {
  readonly id: string;
  readonly title: string;
  readonly note?: string;
  readonly icon: IconName;
  readonly keys?: string;
  readonly run: () => void;
}

const MOST = 12;
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
const JOB_TYPE = /^[A-Za-z][\w.:-]*$/;

function commands(): Command[] {
  const pages = PAGES.filter(isOffered).flatMap(({ path, title, nav }): Command[] =>
    nav
      ? [{ id: `page ${path}`, title, icon: nav.icon, keys: `g ${nav.key}`, run: () => go(href(path)) }]
      : [],
  );
  const ofPage = keyActions.value
    .filter(({ keys }) => !/^(?:[jkxo/?[\]]|g .|Ctrl\+K|Escape|Shift\+X)$/.test(keys))
    .map(({ keys, says, run }): Command => {
      return {
        id: `key ${keys}`,
        title: says,
        icon: "arrow",
        keys,
        run: () => run(new KeyboardEvent("keydown")),
      };
    });
  const rest: Command[] = [
    { id: "theme", title: "Change the theme", note: `now ${theme.value}`, icon: "theme", run: nextTheme },
    {
      id: "single",
      title: areSingleKeysOn.value ? "Switch single keys off" : "Switch single keys on",
      icon: "more",
      run: () => {
        areSingleKeysOn.value = !areSingleKeysOn.value;
      },
    },
    {
      id: "keys",
      title: "All keys",
      icon: "info",
      keys: "?",
      run: () => {
        openedLayer.value = "keys";
      },
    },
  ];
  if (visit.value.state === "known" && visit.value.session.can_log_out)
    rest.push({ id: "out", title: "Log out", icon: "out", run: () => void logOut() });
  return [...pages, ...ofPage, ...rest];
}

/** What was written, taken for the name of something: an id, a type, a queue. */
function targets(text: string): Command[] {
  const wanted = text.trim();
  if (wanted === "") return [];
  if (UUID.test(wanted))
    return [{ id: "job", title: `Job ${wanted}`, icon: "jobs", run: () => go(href(`jobs/${wanted}`)) }];
  const lower = wanted.toLowerCase();
  const queues = (figures.value?.queues ?? [])
    .filter(({ queue }) => queue.toLowerCase().includes(lower))
    .slice(0, 5)
    .map(({ queue }): Command => {
      const run = () => go(href("jobs", { queue }));
      return { id: `queue ${queue}`, title: `Jobs in queue ${queue}`, icon: "queues", run };
    });
  if (!JOB_TYPE.test(wanted)) return queues;
  const byType: Command = {
    id: "type",
    title: `Jobs of type ${wanted}`,
    icon: "search",
    run: () => go(href("jobs", { type: wanted })),
  };
  return [...queues, byType];
}

function found(text: string): Command[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const fitting = commands().filter(({ title }) => words.every((word) => title.toLowerCase().includes(word)));
  return [...fitting, ...targets(text)].slice(0, MOST);
}

export function CommandPalette() {
  const [text, setText] = useState("");
  const [index, setIndex] = useState(0);
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  const list = found(text);
  const chosen = list[Math.min(index, list.length - 1)];
  const run = (command: Command | undefined) => {
    if (!command) return;
    close();
    command.run();
  };
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setIndex((index + step + list.length) % Math.max(1, list.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      run(chosen);
    }
  };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Esc closes a dialog by itself; the click is one on what is behind it.
    <dialog
      ref={dialog}
      class="palette"
      aria-label="Command palette"
      onClose={close}
      onClick={(event) => {
        if (event.target === dialog.current) close();
      }}
    >
      <div class="q">
        <Icon name="search" />
        <input
          type="text"
          role="combobox"
          aria-expanded="true"
          aria-controls={`${id}-list`}
          aria-activedescendant={chosen ? `${id}-${chosen.id}` : undefined}
          aria-label="Find a job, a page or a command"
          placeholder="A job's id, a type, a queue, a page or a command"
          value={text}
          // The palette is opened to write into it.
          autofocus
          onInput={(event) => {
            setText(event.currentTarget.value);
            setIndex(0);
          }}
          onKeyDown={onKey}
        />
        <kbd>Esc</kbd>
      </div>
      <Options id={id} list={list} chosen={chosen} onRun={run} />
    </dialog>
  );
}

interface OptionsProps {
  readonly id: string;
  readonly list: readonly Command[];
  readonly chosen: Command | undefined;
  readonly onRun: (command: Command) => void;
}

function Options({ id, list, chosen, onRun }: OptionsProps) {
  return (
    <div class="options" role="listbox" id={`${id}-list`} aria-label="Results">
      {list.length === 0 && <p class="none">Nothing fits. A job's whole id opens the job.</p>}
      {list.map((command) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the field above has the focus and takes the keys.
        // biome-ignore lint/a11y/useFocusableInteractive: the field above has the focus and names the option.
        <div
          key={command.id}
          id={`${id}-${command.id}`}
          class="option"
          role="option"
          aria-selected={command === chosen}
          onClick={() => onRun(command)}
        >
          <Icon name={command.icon} />
          <span class="clip">{command.title}</span>
          {command.note && <span class="t3">{command.note}</span>}
          {command.keys && <kbd>{command.keys}</kbd>}
        </div>
      ))}
    </div>
  );
}
