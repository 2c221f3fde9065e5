import type { TimelineModel } from "./model.ts";
import { CUT_WIDTH, type Scale } from "./scale.ts";

export const pc = (value: number): string => `${value.toFixed(3)}%`;

/** What every row repeats, so that lines read as one from top to bottom. */
export function Guides({
  model: { scale, guides },
  height,
}: {
  readonly model: TimelineModel;
  readonly height: number;
}) {
  return (
    <>
      {scale.ticks.map((at) => (
        <line key={at} class="g-grid" x1={pc(scale.x(at))} x2={pc(scale.x(at))} y1="0" y2={height} />
      ))}
      {guides.map(({ kind, at }) => (
        <line
          key={`${kind} ${at}`}
          class={`g-${kind}`}
          x1={pc(scale.x(at))}
          x2={pc(scale.x(at))}
          y1="0"
          y2={height}
        />
      ))}
    </>
  );
}

export function Cuts({ scale, height }: { readonly scale: Scale; readonly height: number }) {
  const steps = Math.ceil(height / 12);
  const wave = `M0 -2 ${Array.from({ length: steps }, (_, index) => `q${index % 2 ? -4 : 4} 6 0 12`).join(" ")}`;
  return (
    <>
      {scale.cuts.map((cut) => (
        <g key={cut.from}>
          <rect class="brk" x={pc(cut.x + 1.5)} width={pc(CUT_WIDTH - 3)} y="0" height={height} />
          {[1.5, CUT_WIDTH - 1.5].map((edge) => (
            <svg key={edge} aria-hidden="true" x={pc(cut.x + edge)} overflow="visible">
              <path class="brk-l" d={wave} />
            </svg>
          ))}
        </g>
      ))}
    </>
  );
}
