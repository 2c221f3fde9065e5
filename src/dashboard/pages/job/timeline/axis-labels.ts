/** About as wide as a letter of a label, in per cent of a plot of 600 px. */
export const LETTER = 1.1;

/** How much narrower the plot of a phone is: letters and the pill of now take more of it. */
export const PHONE = 1.8;

interface AxisLabel {
  readonly at: number;
  readonly x: number;
  readonly text: string;
}

/** The labels that have room beside what is there; of two that collide, the one that stands first stays. */
export function apart(
  labels: readonly AxisLabel[],
  taken: readonly (readonly [from: number, to: number])[],
  letter = LETTER,
): AxisLabel[] {
  const used = [...taken];
  return labels.filter(({ x, text }) => {
    const half = (text.length * letter + 1) / 2;
    if (used.some(([from, to]) => x - half < to && x + half > from)) return false;
    used.push([x - half, x + half]);
    return true;
  });
}
