import { useState } from "preact/hooks";
import type { ApiError, Result } from "../../api/client.ts";

/** Runs an action and keeps what the server said where it refused. */
export function useAction() {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const run = async <Value>(act: () => Promise<Result<Value>>, done: (value: Value) => void) => {
    setBusy(true);
    const result = await act();
    setBusy(false);
    if (result.ok) done(result.data);
    else setError(result.error);
  };
  return { busy: isBusy, error, run };
}
