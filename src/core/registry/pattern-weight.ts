const HEAVIEST = 1_000_000;
const REPEAT = /^\{\d+(?:,\d*)?\}$/;
/** One piece of a pattern: an escape, a class, a repetition, or a character. */
const TOKEN = /^(?:\\[\s\S]?|\[\^?\]?(?:\\[\s\S]|[^\]\\])*\]|\{\d+(?:,\d*)?\}|[\s\S])/;

/**
 * How large a pattern is when its repetitions are written out: `(ab){50}` weighs 100. RE2 compiles it to about as many
 * steps, and each character of a text may visit all of them.
 */
export function patternWeight(pattern: string): number {
  const open: { weight: number; last: number }[] = [];
  let group = { weight: 0, last: 0 };
  const add = (weight: number) => {
    group.weight += weight;
    group.last = weight;
  };
  for (let at = 0; at < pattern.length; ) {
    const [token] = TOKEN.exec(pattern.slice(at)) as RegExpExecArray;
    at += token.length;
    if (token === "(") {
      open.push(group);
      group = { weight: 0, last: 0 };
    } else if (token === ")") {
      const { weight } = group;
      group = open.pop() ?? { weight: 0, last: 0 };
      add(weight + 1);
    } else if (REPEAT.test(token)) {
      const times = Math.max(1, ...token.slice(1, -1).split(",").map(Number));
      group.weight += group.last * (times - 1);
      group.last *= times;
    } else add(1);
    if (group.weight > HEAVIEST) return group.weight;
  }
  return open.reduce((total, { weight }) => total + weight, group.weight);
}
