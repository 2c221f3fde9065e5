/** The lines of a plot, one after the other. */
export type Numbers = readonly (readonly (number | null)[])[];

/** Whether two plots would look the same. What was read again is a new array, even where nothing changed. */
export function areSame(before: Numbers, after: Numbers): boolean {
  if (before.length !== after.length) return false;
  return before.every((line, index) => {
    const other = after[index] as readonly (number | null)[];
    return line === other || (line.length === other.length && line.every((value, at) => value === other[at]));
  });
}
