// tidy: table
/** Findings of long runs whose cause is mended: a part of the text of the finding, and how it was mended. */
export const MENDED_FINDINGS: readonly (readonly [part: string, how: string])[] = [
  [
    "imports that name stored jobs of 1 MB",
    "imports load what is stored without its documents and in parts; the flood is one of the attacks",
  ],
];
