// tidy: table
/** Findings of long runs whose cause is mended: a part of the text of the finding, and how it was mended. */
export const MENDED_FINDINGS: readonly (readonly [part: string, how: string])[] = [
  [
    "seed 950008974 broke",
    "a clock reading during which the machine slept was taken for a jump of the store's clock; `test/engine/clock.test.ts` has it",
  ],
  [
    "imports that name stored jobs of 1 MB",
    "imports read stored jobs without their documents, and in parts (the first mend only did the latter); the flood is one of the attacks",
  ],
  [
    '"destinations":["d",{"type":[],"toString":"?"}]',
    "what is no text is no destination, and is refused; `test/server/calls-hostile.test.ts` has it",
  ],
];
