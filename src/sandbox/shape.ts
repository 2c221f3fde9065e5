/**
 * What a document may contain, besides its size. Parsing and checking cost by the number of keys, lists and objects:
 * 4 MB of brackets would block the worker for seconds. The same values limit the body of an HTTP request by default.
 */
const DEEPEST = 100;
const MOST_KEYS = 50_000;
const MOST_CONTAINERS = 100_000;

const QUOTE = 34;
const BACKSLASH = 92;
const COLON = 58;
const OPEN_LIST = 91;
const CLOSE_LIST = 93;
const OPEN_OBJECT = 123;
const CLOSE_OBJECT = 125;

/**
 * What is wrong with the shape of a JSON text, or undefined. It reads the text once and stops at the first problem.
 * `around` is the number of levels of the message that the document is in.
 */
export function shapeProblem(text: string, around = 0): string | undefined {
  let depth = 0;
  let keys = 0;
  let containers = 0;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit === QUOTE) {
      index = endOfText(text, index);
    } else if (unit === OPEN_LIST || unit === OPEN_OBJECT) {
      if (++depth > DEEPEST + around) return `more than ${DEEPEST} levels`;
      if (++containers > MOST_CONTAINERS) return `more than ${MOST_CONTAINERS} lists and objects`;
    } else if (unit === CLOSE_LIST || unit === CLOSE_OBJECT) depth -= 1;
    else if (unit === COLON && ++keys > MOST_KEYS) return `more than ${MOST_KEYS} keys`;
  }
  return undefined;
}

/** The index of the quote that ends the string which begins at `from`. */
function endOfText(text: string, from: number): number {
  for (let end = text.indexOf('"', from + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let before = end - 1;
    while (text.charCodeAt(before) === BACKSLASH) before -= 1;
    // An even number of backslashes: they escape each other, not the quote.
    if ((end - before) % 2 === 1) return end;
  }
  return text.length;
}
