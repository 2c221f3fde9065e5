import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { clockText, shortClockText } from "./format.ts";

export interface PlotLine {
  readonly name: string;
  /** A gap is null, and is never drawn as zero. */
  readonly values: readonly (number | null)[];
  readonly latest?: string;
}

export interface PlotHandle {
  update(times: readonly number[], lines: readonly PlotLine[]): void;
  destroy(): void;
}

export interface PlotInput {
  readonly times: readonly number[];
  readonly lines: readonly PlotLine[];
  readonly format: (value: number) => string;
  readonly of?: "durations" | "counts" | undefined;
}

/** Steps of the grid: whole jobs, and stretches of time as clocks have them. */
const STEPS = {
  counts: [1, 2, 5]
    .flatMap((step) => [0, 1, 2, 3, 4, 5, 6].map((power) => step * 10 ** power))
    .sort((a, b) => a - b),
  durations: [
    ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
    ...[1, 2, 5, 10, 15, 30].map((count) => count * 1_000),
    ...[1, 2, 5, 10, 15, 30].map((count) => count * 60_000),
    ...[1, 2, 6, 12, 24, 48, 168, 720].map((count) => count * 3_600_000),
  ],
};

/** A value between two gaps has no line; a dot keeps it from being lost. */
/** Half of a label: one that begins left of the plot would be cut. */
const HALF_LABEL = 18;

function hasRoom(shown: uPlot, at: number): boolean {
  return shown.valToPos(at, "x") >= HALF_LABEL;
}

function lonely(values: ArrayLike<number | null | undefined>): number[] {
  const found: number[] = [];
  for (let index = 0; index < values.length; index++)
    if (values[index] != null && values[index - 1] == null && values[index + 1] == null) found.push(index);
  return found;
}

const HEIGHT = 132;

/** A canvas cannot read `light-dark()`; the browser resolves it in the colour of an element. */
function colours(host: HTMLElement): (name: string) => string {
  const probe = document.createElement("span");
  probe.className = "colour-probe";
  host.append(probe);
  const found = new Map<string, string>();
  for (const name of ["plot-1", "plot-2", "plot-3", "plot-area", "plot-grid", "text-3"]) {
    probe.dataset.colour = name;
    found.set(name, getComputedStyle(probe).color);
  }
  probe.remove();
  return (name) => found.get(name) ?? "";
}

function dataOf(times: readonly number[], lines: readonly PlotLine[]): uPlot.AlignedData {
  return [times.map((at) => at / 1_000), ...lines.map(({ values }) => [...values])] as uPlot.AlignedData;
}

/** Draws into `host` and keeps its width. */
export function drawPlot(host: HTMLElement, { times, lines, format, of }: PlotInput): PlotHandle {
  const colour = colours(host);
  const font = `11px ${getComputedStyle(host).fontFamily}`;
  const axis = { stroke: colour("text-3"), font, ticks: { show: false }, gap: 6 };
  const tip = document.createElement("div");
  tip.className = "plot-tip";
  tip.hidden = true;
  const plot = new uPlot(
    {
      width: Math.max(80, host.clientWidth),
      height: HEIGHT,
      legend: { show: false },
      padding: [8, 0, 0, 0],
      cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
      scales: { y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.1 : 1] } },
      series: [
        {},
        ...lines.map((_line, index) => ({
          stroke: colour(`plot-${index + 1}`),
          width: 1.5,
          ...(lines.length === 1 && { fill: colour("plot-area") }),
          points: {
            show: true,
            size: 4,
            filter: (shown: uPlot, series: number) => lonely(shown.data[series] ?? []),
          },
          spanGaps: false,
        })),
      ],
      axes: [
        {
          ...axis,
          size: 22,
          space: 64,
          grid: { show: false },
          values: (shown: uPlot, seconds: number[]) =>
            seconds.map((at) => (hasRoom(shown, at) ? shortClockText(at * 1_000) : "")),
        },
        {
          ...axis,
          side: 1,
          size: widthOf,
          ...(of && { incrs: STEPS[of] }),
          space: 36,
          grid: { stroke: colour("plot-grid"), width: 1 },
          values: (_plot: uPlot, values: number[]) =>
            values.map((value) => (value === 0 ? "" : format(value))),
        },
      ],
      hooks: { setCursor: [(shown: uPlot) => showTip(shown, tip, lines, format)] },
    },
    dataOf(times, lines),
    host,
  );
  plot.over.append(tip);
  const observer = new ResizeObserver(() =>
    plot.setSize({ width: Math.max(80, host.clientWidth), height: HEIGHT }),
  );
  observer.observe(host);
  return {
    update(newTimes, newLines) {
      lines = newLines;
      plot.setData(dataOf(newTimes, newLines));
    },
    destroy() {
      observer.disconnect();
      plot.destroy();
    },
  };
}

function showTip(
  plot: uPlot,
  tip: HTMLElement,
  lines: readonly PlotLine[],
  format: (value: number) => string,
) {
  const index = plot.cursor.idx;
  const at = index === null || index === undefined ? undefined : plot.data[0]?.[index];
  tip.hidden = at === undefined;
  if (at === undefined || index === null || index === undefined) return;
  const texts = lines.map(({ name }, line) => {
    const value = plot.data[line + 1]?.[index];
    const text = value === null || value === undefined ? "no data" : format(value);
    return lines.length === 1 ? text : `${name} ${text}`;
  });
  tip.textContent = `${clockText(at * 1_000)}  ${texts.join(", ")}`;
  tip.classList.toggle("left", (plot.cursor.left ?? 0) > plot.over.clientWidth / 2);
}

/** An axis is as wide as its labels. */
function widthOf(_plot: uPlot, labels: readonly string[] | null): number {
  return 12 + 7 * Math.max(2, ...(labels ?? []).map(({ length }) => length));
}
