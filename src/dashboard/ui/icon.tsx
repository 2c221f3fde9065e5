import { ICONS, type IconName, MARKS, type MarkName } from "./drawings.ts";

/** All drawings, once in the page. They are constants of ours: nothing a user wrote is ever part of them. */
export function Sprite() {
  const symbols = [
    ...Object.entries(ICONS).map(
      ([name, text]) => `<symbol id="i-${name}" viewBox="0 0 16 16">${text}</symbol>`,
    ),
    ...Object.entries(MARKS).map(
      ([name, text]) => `<symbol id="s-${name}" viewBox="0 0 14 14">${text}</symbol>`,
    ),
  ].join("");
  const hatch =
    '<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" class="hatch-a"/><line x1="1.5" x2="1.5" y2="6" class="hatch-b"/></pattern>';
  return (
    <svg class="sr" width="0" height="0" aria-hidden="true">
      {/* A constant of this program, checked in with it. */}
      <defs dangerouslySetInnerHTML={{ __html: symbols + hatch }} />
    </svg>
  );
}

export function Icon({ name, small = false }: { readonly name: IconName; readonly small?: boolean }) {
  return (
    <svg class={small ? "i i14" : "i"} aria-hidden="true">
      <use href={`#i-${name}`} />
    </svg>
  );
}

export function Mark({ name }: { readonly name: MarkName }) {
  return (
    <svg class="st" aria-hidden="true">
      <use href={`#s-${name}`} />
    </svg>
  );
}
