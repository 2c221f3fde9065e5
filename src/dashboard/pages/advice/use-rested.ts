import { useEffect, useState } from "preact/hooks";
import type { ApiError, Result } from "../../api/client.ts";
import { after } from "../../system.ts";

/**
 * Asks the server when `key` has rested for `rest` milliseconds; nothing while it is undefined. What it said last stays
 * until it has answered.
 */
export function useRested<Value>(
  key: string | undefined,
  rest: number,
  ask: () => Promise<Result<Value>>,
): { readonly answer: Value | undefined; readonly error: ApiError | undefined } {
  const [answer, setAnswer] = useState<Value>();
  const [error, setError] = useState<ApiError>();
  useEffect(() => {
    if (key === undefined) return undefined;
    let isGone = false;
    const cancel = after(rest, () => {
      ask().then((result) => {
        if (isGone) return;
        if (result.ok) setAnswer(result.data);
        setError(result.ok ? undefined : result.error);
      });
    });
    return () => {
      isGone = true;
      cancel();
    };
  }, [key]);
  return { answer, error };
}
