import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { theme } from "../state/theme.ts";
import type { PlotHandle, PlotInput, PlotLine } from "./plot-canvas.ts";
import { areSame, type Numbers } from "./same-numbers.ts";

export type { PlotLine } from "./plot-canvas.ts";

interface PlotProps {
  readonly title: string;
  /** The newest value, in large. */
  readonly value?: ComponentChildren;
  readonly unit?: ComponentChildren;
  /** Milliseconds, ascending; the same for all lines. */
  readonly times: readonly number[];
  readonly lines: readonly PlotLine[];
  readonly format: (value: number) => string;
  /** What the numbers are: it decides where the lines of the grid lie. */
  readonly of?: PlotInput["of"];
  /** What is said where there is nothing to draw. */
  readonly empty: string;
  readonly isStale?: boolean;
}

/** A plot over time. uPlot comes when the first plot is shown, and draws on a canvas. */
export function Plot({ title, value, unit, times, lines, format, of, empty, isStale = false }: PlotProps) {
  const area = useRef<HTMLDivElement>(null);
  const handle = useRef<PlotHandle | null>(null);
  const [isReady, setReady] = useState(false);
  const isEmpty = !lines.some(({ values }) => values.some((one) => one !== null && one !== 0));
  const names = lines.map(({ name }) => name).join("|");

  // Made anew when its lines or the theme are others.
  useEffect(() => {
    let isGone = false;
    const { current } = area;
    if (!current || isEmpty) return;
    import("./plot-canvas.ts").then(({ drawPlot }) => {
      if (isGone) return;
      handle.current = drawPlot(current, { times, lines, format, of });
      setReady(true);
    });
    return () => {
      isGone = true;
      handle.current?.destroy();
      handle.current = null;
    };
  }, [names, isEmpty, theme.value]);

  // The page may be rendered each second, for its countdowns. A canvas is painted only when its numbers are others.
  const painted = useRef<Numbers | null>(null);
  useEffect(() => {
    if (!handle.current) {
      painted.current = null;
      return;
    }
    const numbers = [times, ...lines.map(({ values }) => values)];
    if (painted.current && areSame(painted.current, numbers)) return;
    painted.current = numbers;
    handle.current.update(times, lines);
  });

  return (
    <section class={`plot${isStale ? " stale" : ""}`} aria-label={title}>
      <header>
        <h3>{title}</h3>
        {lines.length > 1 && !isEmpty && (
          <span class="legend">
            {lines.map(({ name, latest }, index) => (
              <span key={name} class={`l${index + 1}`}>
                <svg aria-hidden="true">
                  <line class={`ln l${index + 1}`} x1="0" x2="12" y1="4" y2="4" />
                </svg>
                {name} <b>{latest}</b>
              </span>
            ))}
          </span>
        )}
        {value !== undefined && <span class="v">{value}</span>}
        {unit !== undefined && <span class="u">{unit}</span>}
      </header>
      {isEmpty ? <p class="plot-empty">{empty}</p> : <div class="area" ref={area} data-ready={isReady} />}
    </section>
  );
}
