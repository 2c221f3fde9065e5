import type { WorkflowStep } from "../../../ojs/replies/wire-replies.ts";
import { href } from "../../state/router.ts";
import { STATE_LOOKS } from "../../ui/badge.tsx";
import type { Layout } from "./layers.ts";

const WIDTH = 168;
const HEIGHT = 44;
const GAP_X = 44;
const GAP_Y = 12;
const EDGE = 8;
/** More steps of one column are counted, not drawn. */
const MOST_IN_COLUMN = 12;
const MOST_CHARS = 21;

interface Placed {
  readonly step: WorkflowStep | null;
  readonly more: number;
  readonly x: number;
  readonly y: number;
}

interface Drawing {
  readonly width: number;
  readonly height: number;
  readonly columns: readonly (readonly Placed[])[];
}

function place({ layers }: Layout): Drawing {
  const counts = layers.map((layer) => Math.min(layer.length, MOST_IN_COLUMN + 1));
  const rows = Math.max(1, ...counts);
  const height = rows * (HEIGHT + GAP_Y) - GAP_Y + 2 * EDGE;
  const columns = layers.map((layer, index) => {
    const isCut = layer.length > MOST_IN_COLUMN + 1;
    const shown = isCut ? layer.slice(0, MOST_IN_COLUMN) : layer;
    const cells = [
      ...shown.map((step) => ({ step, more: 0 })),
      ...(isCut ? [{ step: null, more: layer.length - MOST_IN_COLUMN }] : []),
    ];
    const own = cells.length * (HEIGHT + GAP_Y) - GAP_Y;
    const top = (height - own) / 2;
    return cells.map((cell, row) => ({
      ...cell,
      x: EDGE + index * (WIDTH + GAP_X),
      y: top + row * (HEIGHT + GAP_Y),
    }));
  });
  return { width: Math.max(1, layers.length) * (WIDTH + GAP_X) - GAP_X + 2 * EDGE, height, columns };
}

/** The steps of a workflow and what they wait for. Every step is a link; the table below says the same in words. */
export function Graph({ layout, current }: { readonly layout: Layout; readonly current?: string }) {
  const { width, height, columns } = place(layout);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls sideways must be reachable with the keyboard.
    <section class="graph" aria-label="Graph of the steps" tabIndex={0}>
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-label="Steps">
        {layout.edges ? (
          <ExactEdges edges={layout.edges} columns={columns} />
        ) : (
          columns
            .slice(1)
            .map((column, index) => (
              <Join key={column[0]?.x} from={columns[index] ?? []} to={column} middle={height / 2} />
            ))
        )}
        {columns.flat().map((cell) => (
          <Cell key={`${cell.x} ${cell.y}`} cell={cell} isCurrent={cell.step?.id === current} />
        ))}
      </svg>
    </section>
  );
}

function curve(fromX: number, fromY: number, toX: number, toY: number): string {
  const bend = (toX - fromX) / 2;
  return `M${fromX} ${fromY}C${fromX + bend} ${fromY} ${toX - bend} ${toY} ${toX} ${toY}`;
}

/** All of one column must end before any of the next begins: the lines meet in one point. */
function Join({
  from,
  to,
  middle,
}: {
  readonly from: readonly Placed[];
  readonly to: readonly Placed[];
  readonly middle: number;
}) {
  const meet = (to[0]?.x ?? 0) - GAP_X / 2;
  const isOver = from.every(({ step }) => step === null || step.state === "completed");
  return (
    <g class={isOver ? "edge over" : "edge"}>
      {from.map(({ x, y }) => (
        <path key={`f${y}`} d={curve(x + WIDTH, y + HEIGHT / 2, meet, middle)} />
      ))}
      {to.map(({ x, y }) => (
        <path key={`t${y}`} d={curve(meet, middle, x, y + HEIGHT / 2)} />
      ))}
      {from.length + to.length > 2 && <circle cx={meet} cy={middle} r="3" />}
    </g>
  );
}

function ExactEdges({
  edges,
  columns,
}: {
  readonly edges: NonNullable<Layout["edges"]>;
  readonly columns: readonly (readonly Placed[])[];
}) {
  const places = new Map(
    columns.flat().flatMap((cell) => (cell.step ? [[cell.step.id, cell] as const] : [])),
  );
  return (
    <g>
      {edges.map(([from, to]) => {
        const [a, b] = [places.get(from), places.get(to)];
        if (!a || !b) return null;
        return (
          <g key={`${from} ${to}`} class={a.step?.state === "completed" ? "edge over" : "edge"}>
            <path d={curve(a.x + WIDTH, a.y + HEIGHT / 2, b.x, b.y + HEIGHT / 2)} />
          </g>
        );
      })}
    </g>
  );
}

const cut = (text: string) => (text.length > MOST_CHARS ? `${text.slice(0, MOST_CHARS - 1)}…` : text);

function Cell({
  cell: { step, more, x, y },
  isCurrent,
}: {
  readonly cell: Placed;
  /** Whether the page is about this step. */
  readonly isCurrent: boolean;
}) {
  if (!step)
    return (
      <g class="node more" transform={`translate(${x} ${y})`}>
        <rect width={WIDTH} height={HEIGHT} rx="8" />
        <text x={WIDTH / 2} y={HEIGHT / 2 + 4} text-anchor="middle">
          {more} more
        </text>
      </g>
    );
  const look = STATE_LOOKS[step.state] ?? { mark: "open", tone: "off", word: step.state };
  const isRunning = step.state === "active" && step.progress !== null;
  const word = isRunning ? `${look.word}, ${Math.round((step.progress ?? 0) * 100)} %` : look.word;
  return (
    <a href={href(`jobs/${step.id}`)} aria-current={isCurrent ? "page" : undefined}>
      <g class={`node is-${look.tone}`} transform={`translate(${x} ${y})`}>
        {step.type.length > MOST_CHARS && <title>{step.type}</title>}
        <rect width={WIDTH} height={HEIGHT} rx="8" />
        {isRunning && (
          <rect
            class="done"
            x="1"
            y={HEIGHT - 4}
            width={(WIDTH - 2) * (step.progress ?? 0)}
            height="3"
            rx="1.5"
          />
        )}
        <use href={`#s-${look.mark}`} x="10" y="15" width="14" height="14" class="st" />
        <text x="32" y="19">
          {cut(step.type)}
        </text>
        <text x="32" y="34" class="sub">
          {word}
        </text>
      </g>
    </a>
  );
}
