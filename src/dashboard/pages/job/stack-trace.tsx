import { useState } from "preact/hooks";
import { CopyButton } from "../../ui/button.tsx";

const LIBRARY =
  /node:|node_modules|\(native\)|<anonymous>$|internal\/|\/src\/(?:core|engine|ports|sandbox|client)\/|curfew\/dist\//;
const FRAME = /^\s*at /;

interface StackTraceProps {
  readonly lines: readonly string[];
  readonly isHang: boolean;
  /** Whose it is; there may be several on the page. */
  readonly label: string;
}

/** A stack, never wrapped. Frames of Node and of libraries are dim; the first one of the user is marked. */
export function StackTrace({ lines, isHang, label }: StackTraceProps) {
  const [isWhole, setWhole] = useState(false);
  const frames = lines.filter((line) => FRAME.test(line));
  const first = frames.findIndex((line) => !LIBRARY.test(line));
  const shown = isWhole ? frames : foldedFrames(frames, first);
  const hidden = frames.length - shown.length;
  if (frames.length === 0) return null;
  return (
    <div>
      <div class="cap">
        <h3>{isHang ? "Where it hung" : "Stack"}</h3>
        <span>
          {isHang ? "read from the process before it was ended" : "the first frame of your code is marked"}
        </span>
        <span class="push">
          <CopyButton text={lines.join("\n")} what="the stack" />
        </span>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls sideways, and a keyboard must be able to. */}
      <section class="code stack" tabIndex={0} aria-label={label}>
        {shown.map((line) => (
          <div key={line} class={line === frames[first] ? "here" : LIBRARY.test(line) ? "lib" : "user"}>
            <span>{line.trim()}</span>
            {line === frames[first] && <em>{isHang ? "it was here" : "your code"}</em>}
          </div>
        ))}
        {hidden > 0 && (
          <div class="fold">
            <button type="button" class="link" onClick={() => setWhole(true)}>
              {hidden} more frames of libraries
            </button>
          </div>
        )}
      </section>
    </div>
  );
}

const FEW = 4;

function foldedFrames(frames: readonly string[], first: number): readonly string[] {
  const own = frames.filter((line) => !LIBRARY.test(line));
  if (own.length === 0 || frames.length <= FEW + 2) return frames.slice(0, 12);
  return frames.filter((line, index) => !LIBRARY.test(line) || Math.abs(index - first) <= 1);
}
