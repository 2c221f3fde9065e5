interface SparklineProps {
  readonly label: string;
  /** From old to new. A gap is null: it stays empty and is never drawn as zero. */
  readonly values: readonly (number | null)[];
  readonly tone?: "bad" | "warn" | undefined;
}

const WIDTH = 100;
const HEIGHT = 24;

/** A line without axes, for a cell of a list. */
export function Sparkline({ label, values, tone }: SparklineProps) {
  const known = values.filter((value): value is number => value !== null);
  if (known.length < 2) return <span />;
  const top = Math.max(...known, 1e-9);
  const x = (index: number) => (index / (values.length - 1)) * WIDTH;
  const y = (value: number) => HEIGHT - 2 - (value / top) * (HEIGHT - 4);
  const runs = runsOf(values);
  const last = values.at(-1);
  return (
    <svg
      class={`spark ${tone ?? ""}`}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      {runs.map(({ from, run }) => {
        // One point alone is a short stroke: a line without length is not seen.
        const drawn = run.length === 1 ? [...run, ...run] : run;
        const points = drawn
          .map((value, index) => `${x(from + index).toFixed(2)},${y(value).toFixed(2)}`)
          .join(" ");
        const start = x(from).toFixed(2);
        const end = x(from + drawn.length - 1).toFixed(2);
        return (
          <g key={from}>
            <polygon class="ar" points={`${start},${HEIGHT} ${points} ${end},${HEIGHT}`} />
            <polyline class="ln" points={points} />
          </g>
        );
      })}
      {typeof last === "number" && <circle class="end" cx={WIDTH} cy={y(last)} r="2" />}
    </svg>
  );
}

function runsOf(values: readonly (number | null)[]): { from: number; run: number[] }[] {
  const runs: { from: number; run: number[] }[] = [];
  values.forEach((value, index) => {
    if (value === null) return;
    const current = runs.at(-1);
    if (current && current.from + current.run.length === index) current.run.push(value);
    else runs.push({ from: index, run: [value] });
  });
  return runs;
}

/** Bars along time, for a row of a small table. */
export function Bars({
  label,
  values,
  tone = "",
}: {
  readonly label: string;
  readonly values: readonly number[];
  readonly tone?: string;
}) {
  const top = Math.max(...values, 1);
  const width = 100 / Math.max(1, values.length);
  return (
    <svg role="img" aria-label={label} class="bars">
      <line class="base" x1="0" x2="100%" y1="17.5" y2="17.5" />
      {values.map((value, index) =>
        value === 0 ? null : (
          <rect
            // The place in time is what it is.
            key={index}
            class={`bar ${tone}`}
            x={`${index * width}%`}
            y={18 - Math.max(2, (value / top) * 16)}
            width={`${width * 0.8}%`}
            height={Math.max(2, (value / top) * 16)}
          />
        ),
      )}
    </svg>
  );
}
