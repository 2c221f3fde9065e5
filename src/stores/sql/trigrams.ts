/** More say nothing new, and each costs a lookup. */
const MOST = 40;

/** Trigrams that together cover a text of 3 characters or more: every one of them is in a text that contains it. */
export function trigramsOf(text: string): readonly string[] {
  const characters = [...text];
  const last = characters.length - 3;
  const step = Math.max(3, Math.ceil(last / (MOST - 1)));
  const grams = new Set<string>();
  for (let at = 0; at < last; at += step) grams.add(characters.slice(at, at + 3).join(""));
  return [...grams.add(characters.slice(last).join(""))];
}
