import type { MarkKind } from "./drawn.ts";

/** A class with the radius of a circle, or with a path. */
type Drawing = readonly [name: string, shape: number | string];

/** The marks on the lane. Each has an outline of its own: none needs its colour to be told. */
const MARKS: Readonly<Record<MarkKind, readonly Drawing[]>> = {
  created: [["m-start", 4.5]],
  start: [["m-start", "M-3 -4.5L4.5 0L-3 4.5z"]],
  signal: [["m-soft", "M0 -8L8 0L0 8L-8 0z"]],
  late: [
    ["m-soft", "M0 -9L9 0L0 9L-9 0z"],
    ["m-x", "M-3.2 0.2l2.2 2.2 4-4.6"],
  ],
  kill: [
    ["m-force", "M-3.5 -8.500h7L8.5 -3.500v7L3.5 8.500h-7L-8.5 3.500v-7z"],
    ["m-x", "M-3 -3L3 3M3 -3L-3 3"],
  ],
  fail: [
    ["m-fail", 7],
    ["m-fx", "M-2.6 -2.600L2.6 2.600M2.6 -2.600L-2.6 2.6"],
  ],
  done: [
    ["m-done", 8],
    ["m-x", "M-3.4 0.200l2.3 2.4 4.4-5"],
  ],
  stuck: [
    ["m-stuck", "M0 -8.500L7.4 -4.250v8.5L0 8.500L-7.4 4.250v-8.5z"],
    ["m-fx", "M0 -4v4.600M0 3.200v0.6"],
  ],
  cancelled: [
    ["m-off", 7.5],
    ["m-x", "M-3.2 3.200L3.2 -3.2"],
  ],
};

export const MarkShape = ({ kind }: { readonly kind: MarkKind }) => (
  <>
    {MARKS[kind].map(([name, shape]) =>
      typeof shape === "number" ? (
        <circle key={name} class={name} r={shape} />
      ) : (
        <path key={name} class={name} d={shape} />
      ),
    )}
  </>
);
