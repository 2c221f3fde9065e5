import { useState } from "preact/hooks";

/** How a form says that it ends. */
export interface FormEnd {
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Which form of a page is open. `end` closes it, and reads again what it changed. */
export function useForm<Form>(onChange: () => void) {
  const [form, open] = useState<Form | null>(null);
  const onClose = () => open(null);
  const onDone = () => {
    open(null);
    onChange();
  };
  const end: FormEnd = { onClose, onDone };
  return { form, open, end };
}
