import { signal } from "@preact/signals";
import { after } from "../system.ts";

export interface Toast {
  readonly id: number;
  readonly text: string;
  readonly kind: "said" | "failed";
  readonly action?: { readonly label: string; readonly run: () => void } | undefined;
}

export const toasts = signal<readonly Toast[]>([]);
const MOST = 4;
const STAYS = 6_000;
let count = 0;

/** Says what happened, in a corner. What failed stays until somebody closes it. */
export function toast(text: string, options: Partial<Pick<Toast, "kind" | "action">> = {}): void {
  count += 1;
  const made: Toast = { id: count, text, kind: "said", ...options };
  toasts.value = [...toasts.value, made].slice(-MOST);
  if (made.kind === "said") after(made.action ? 2 * STAYS : STAYS, () => dismiss(made.id));
}

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}
