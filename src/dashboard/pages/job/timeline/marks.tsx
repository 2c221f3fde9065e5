import type { MarkKind } from "./drawn.ts";

/** The marks on the lane. Each has an outline of its own: none needs its colour to be told. */
export function MarkShape({ kind }: { readonly kind: MarkKind }) {
  switch (kind) {
    case "created":
      return <circle class="m-start" r="4.5" />;
    case "start":
      return <path class="m-start" d="M-3 -4.5L4.5 0L-3 4.5z" />;
    case "signal":
      return <path class="m-soft" d="M0 -8L8 0L0 8L-8 0z" />;
    case "late":
      return (
        <>
          <path class="m-soft" d="M0 -9L9 0L0 9L-9 0z" />
          <path class="m-x" d="M-3.2 0.2l2.2 2.2 4-4.6" />
        </>
      );
    case "kill":
      return (
        <>
          <path class="m-force" d="M-3.5 -8.500h7L8.5 -3.500v7L3.5 8.500h-7L-8.5 3.500v-7z" />
          <path class="m-x" d="M-3 -3L3 3M3 -3L-3 3" />
        </>
      );
    case "fail":
      return (
        <>
          <circle class="m-fail" r="7" />
          <path class="m-fx" d="M-2.6 -2.600L2.6 2.600M2.6 -2.600L-2.6 2.6" />
        </>
      );
    case "done":
      return (
        <>
          <circle class="m-done" r="8" />
          <path class="m-x" d="M-3.4 0.200l2.3 2.4 4.4-5" />
        </>
      );
    case "stuck":
      return (
        <>
          <path class="m-stuck" d="M0 -8.500L7.4 -4.250v8.5L0 8.500L-7.4 4.250v-8.5z" />
          <path class="m-fx" d="M0 -4v4.600M0 3.200v0.6" />
        </>
      );
    case "cancelled":
      return (
        <>
          <circle class="m-off" r="7.5" />
          <path class="m-x" d="M-3.2 3.200L3.2 -3.2" />
        </>
      );
  }
}
