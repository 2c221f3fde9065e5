import { DEADLINE_HEADER } from "../core/call/deadline-header.ts";
import { TimeoutError } from "../core/job/reasons.ts";
import { currentAmbient } from "../ports/ambient.ts";

/**
 * `fetch` that ends with the handler, step or call around it, and sends what is left of its time to the server
 * (SEMANTICS 10.6). Outside of them it is plain `fetch`.
 */
export async function deadlineFetch(
  input: string | URL | Request,
  init: RequestInit = {},
): Promise<Response> {
  const ambient = currentAmbient();
  if (!ambient) return fetch(input, init);
  const left = ambient.untilSignal();
  ambient.signal.throwIfAborted();
  if (left <= 0) throw new TimeoutError("total", 0, 0, null);
  const own = init.signal ?? (input instanceof Request ? input.signal : undefined);
  const signal = own ? AbortSignal.any([own, ambient.signal]) : ambient.signal;
  const headers = new Headers(init.headers ?? (input instanceof Request ? input.headers : undefined));
  // Rounded up: the server must not stop before its caller does. It stops at most a millisecond later per hop.
  if (left !== Number.POSITIVE_INFINITY) headers.set(DEADLINE_HEADER, String(Math.ceil(left)));
  return fetch(input, { ...init, headers, signal });
}
