import { dismiss, toasts } from "../state/toasts.ts";
import { Icon } from "./icon.tsx";

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, kind, action }) => (
        <div class={`toast ${kind}`} key={id}>
          <span>{text}</span>
          {action && (
            <button
              type="button"
              onClick={() => {
                action.run();
                dismiss(id);
              }}
            >
              {action.label}
            </button>
          )}
          <button type="button" class="close" aria-label="Close" onClick={() => dismiss(id)}>
            <Icon name="x" small />
          </button>
        </div>
      ))}
    </div>
  );
}
