/** The keys of a type of options, as a list. The compiler refuses an object that lacks a key or has another one. */
export function keysOf<Options extends object>(
  keys: Readonly<Record<keyof Options, true>>,
): readonly string[] {
  return Object.keys(keys);
}
