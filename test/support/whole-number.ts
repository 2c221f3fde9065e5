/** Reads the value of an option of a script. */
export function wholeNumber(name: string, text: string, least = 0): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isSafeInteger(value) || value < least)
    throw new RangeError(`--${name}: "${text}" is not a whole number from ${least} on; write digits only`);
  return value;
}
