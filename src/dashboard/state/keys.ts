import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { after } from "../system.ts";
import { stored } from "./storage.ts";

/**
 * Keys. A page says what its keys do with `useKeys`; the key help shows all that are in force. Single keys are silent
 * while somebody writes into a field, and can be switched off.
 */

export interface KeyAction {
  /** `j`, `Shift+X`, `Ctrl+K`, or two keys after each other: `g q`. */
  readonly keys: string;
  readonly says: string;
  readonly run: (event: KeyboardEvent) => void;
}

export const areSingleKeysOn = stored<boolean>(
  "keys",
  true,
  (value): value is boolean => typeof value === "boolean",
);
/** All that are in force; those that were added last come first. */
export const keyActions = signal<readonly KeyAction[]>([]);
/** The first of two keys, while the second is awaited. */
const pendingKey = signal<string | null>(null);
const SECOND_WITHIN = 1_500;
let cancelPending = () => {};

/** Adds keys for as long as the component is shown. */
export function useKeys(actions: readonly KeyAction[]): void {
  const latest = useRef(actions);
  latest.current = actions;
  const names = actions.map(({ keys }) => keys).join("|");
  // Before the paint: what can be seen can be reached by its keys. The actions themselves are read when a key is pressed.
  useLayoutEffect(() => {
    const mine = latest.current.map((action, index) => ({
      ...action,
      run: (event: KeyboardEvent) => latest.current[index]?.run(event),
    }));
    keyActions.value = [...mine, ...keyActions.value];
    return () => {
      keyActions.value = keyActions.value.filter((one) => !mine.includes(one));
    };
  }, [names]);
}

function nameOf(event: KeyboardEvent): string {
  const { key, ctrlKey, metaKey, shiftKey } = event;
  const name = key.length === 1 ? key : key;
  if (ctrlKey || metaKey) return `Ctrl+${name.length === 1 ? name.toUpperCase() : name}`;
  return shiftKey && /^[a-z]$/i.test(key) ? `Shift+${key.toUpperCase()}` : name;
}

function isWriting(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(?:input|textarea|select)$/i.test(target.tagName)) &&
    !(target instanceof HTMLInputElement && /^(?:checkbox|radio|button)$/.test(target.type))
  );
}

export function handleKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.altKey || event.isComposing) return;
  const name = nameOf(event);
  const isChord = name.startsWith("Ctrl+");
  if (!isChord && (isWriting(event.target) || document.querySelector("dialog[open]"))) return;
  if (!isChord && name.length === 1 && !areSingleKeysOn.value) return;
  const first = pendingKey.value;
  cancelPending();
  pendingKey.value = null;
  const wanted = first === null ? name : `${first} ${name}`;
  const action = keyActions.value.find(({ keys }) => keys === wanted);
  if (action) {
    event.preventDefault();
    action.run(event);
    return;
  }
  if (first === null && keyActions.value.some(({ keys }) => keys.startsWith(`${name} `))) {
    event.preventDefault();
    pendingKey.value = name;
    cancelPending = after(SECOND_WITHIN, () => {
      pendingKey.value = null;
    });
  }
}
