import { type Signal, signal } from "@preact/signals";

/** What this browser remembers: choices of how things look, never a key and nothing of a job. */
const PREFIX = "curfew.";

function read(name: string): unknown {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + name) ?? "null");
  } catch {
    return null;
  }
}

/** A signal that outlives the page. `isValid` guards against what an older version or a person wrote there. */
export function stored<Value>(name: string, initial: Value, isValid: (value: unknown) => value is Value) {
  const found = read(name);
  const kept: Signal<Value> = signal(isValid(found) ? found : initial);
  kept.subscribe((value) => {
    try {
      localStorage.setItem(PREFIX + name, JSON.stringify(value));
    } catch {
      // A browser that keeps nothing shows the same, until the page is closed.
    }
  });
  return kept;
}
