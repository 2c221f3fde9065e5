import { useState } from "preact/hooks";
import { exactText } from "../../../ui/format.ts";
import { LETTER } from "./axis-labels.ts";
import type { Segment, TimelineMark } from "./drawn.ts";
import { Cuts, Guides, pc } from "./guides.tsx";
import { MarkShape } from "./marks.tsx";
import type { Label, TimelineModel } from "./model.ts";
import type { Scale } from "./scale.ts";

const LANE = 74;
/** What the marks at both ends of a bar take, in per cent. */
const ROOM = 4;
const BAR = { top: 34, height: 24 };

const STEPS: Readonly<Record<string, (index: number, last: number) => number>> = {
  ArrowRight: (index, last) => Math.min(last, index + 1),
  ArrowLeft: (index) => Math.max(0, index - 1),
  Home: () => 0,
  End: (_index, last) => last,
};

/** What happened, as bars and marks. Arrow keys move between the marks, and what each is stands below. */
export function Lane({ model }: { readonly model: TimelineModel }) {
  const [at, setAt] = useState<number | null>(null);
  const marks = [...model.marks].sort((a, b) => a.at - b.at);
  const last = marks.length - 1;
  const index = at === null ? null : Math.min(at, last);
  const chosen = index === null ? undefined : marks[index];
  const move = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    setAt(index === null ? 0 : step(index, last));
  };
  return (
    <div
      class="tl-moments"
      role="slider"
      tabIndex={0}
      aria-label="Moments of this job"
      aria-valuemin={1}
      aria-valuemax={last + 1}
      aria-valuenow={(index ?? 0) + 1}
      aria-valuetext={chosen ? momentText(chosen) : `${last + 1} moments; arrow keys move between them`}
      onKeyDown={move}
      onFocus={() => setAt(index ?? 0)}
      onBlur={() => setAt(null)}
    >
      <Picture model={model} chosen={chosen} />
      {chosen && <p class="tl-moment">{momentText(chosen)}</p>}
    </div>
  );
}

const momentText = ({ text, at }: TimelineMark) => `${text}, ${exactText(at).replace("\n", ", ")}`;

function Picture({
  model,
  chosen,
}: {
  readonly model: TimelineModel;
  readonly chosen: TimelineMark | undefined;
}) {
  const { scale, segments, marks } = model;
  return (
    <svg
      class="p"
      height={LANE}
      role="img"
      aria-label={`What happened so far: ${marks.map(({ text }) => text).join("; ")}`}
    >
      <Guides model={model} height={LANE} />
      {segments.map((segment) => (
        <SegmentBar key={`${segment.kind} ${segment.from}`} segment={segment} scale={scale} />
      ))}
      <Cuts scale={scale} height={LANE} />
      {placed(model).map(({ x, anchor, label }) => (
        <text
          key={`${label.text} ${label.at}`}
          class={`wide halo ${label.tone}`}
          x={pc(x)}
          y="26"
          text-anchor={anchor}
        >
          {label.text}
        </text>
      ))}
      {marks.map(({ kind, at, text }) => (
        <svg key={`${kind} ${at}`} x={pc(scale.x(at))} y={BAR.top + BAR.height / 2} overflow="visible">
          <title>{`${text}\n${exactText(at)}`}</title>
          {chosen?.at === at && chosen.kind === kind && <circle class="mark-ring" r="13" />}
          <MarkShape kind={kind} />
        </svg>
      ))}
    </svg>
  );
}

const RECTS: Readonly<Partial<Record<Segment["kind"], string>>> = {
  wait: "seg-wait",
  folded: "seg-folded",
  run: "seg-run",
  "run-future": "seg-run-future",
  grace: "seg-grace",
  "grace-future": "seg-grace future",
  ghost: "seg-ghost",
  preview: "seg-preview",
  stuck: "seg-stuck",
};
const TEXTS: Readonly<Partial<Record<Segment["kind"], string>>> = {
  wait: "in-wait",
  run: "in-run",
  ghost: "",
  stuck: "force",
};

function SegmentBar({
  segment: { kind, from, to, text },
  scale,
}: {
  readonly segment: Segment;
  readonly scale: Scale;
}) {
  const x = scale.x(from);
  const width = Math.max(0, scale.x(to) - x);
  const middle = BAR.top + BAR.height / 2;
  if (kind === "backoff")
    return (
      <g>
        <line
          class="seg-backoff"
          x1={pc(x + 1)}
          x2={pc(Math.max(x + 1, x + width - 0.5))}
          y1={middle}
          y2={middle}
        />
        {text && width > text.length * LETTER && (
          <text class="wide" x={pc(x + width / 2)} y={BAR.top + BAR.height + 14} text-anchor="middle">
            {text}
          </text>
        )}
      </g>
    );
  const isHatched = kind === "grace" || kind === "grace-future";
  const short = text?.replace(/ ran .*/, "").replace(/, if needed/, "") ?? "";
  const shown =
    text === undefined
      ? ""
      : width > text.length * LETTER + ROOM
        ? text
        : width > short.length * LETTER + ROOM
          ? short
          : "";
  return (
    <g>
      <rect
        class={RECTS[kind]}
        {...(isHatched && { fill: "url(#hatch)" })}
        x={pc(x)}
        width={pc(Math.max(0.35, width))}
        y={BAR.top}
        height={BAR.height}
        rx="3"
      />
      {shown !== "" && TEXTS[kind] !== undefined && (
        <text class={`wide ${TEXTS[kind]}`} x={pc(x + width / 2)} y={middle + 4} text-anchor="middle">
          {shown}
        </text>
      )}
    </g>
  );
}

interface Placed {
  readonly x: number;
  readonly anchor: "start" | "middle" | "end";
  readonly label: Label;
}

/** Labels that would overlap one that stands before them in the list are left out; the chain above has them too. */
function placed({ labels, scale, now, endedAt }: TimelineModel): Placed[] {
  const taken: [number, number][] = endedAt === null ? [[scale.x(now) - 0.5, scale.x(now) + 0.5]] : [];
  return labels.flatMap((label) => {
    const x = scale.x(label.at);
    const width = label.text.length * LETTER + 1;
    const options = [
      ["middle", x - width / 2, x + width / 2],
      ["end", x - width - 0.4, x - 0.4],
      ["start", x + 0.4, x + width + 0.4],
    ] as const;
    const found = options.find(
      ([, from, to]) => from >= -2 && to <= 102 && taken.every(([a, b]) => to < a || from > b),
    );
    if (!found) return [];
    const [anchor, from, to] = found;
    taken.push([from, to]);
    return [{ x: anchor === "end" ? x - 0.4 : anchor === "start" ? x + 0.4 : x, anchor, label }];
  });
}
