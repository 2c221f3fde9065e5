import type { ComponentChildren } from "preact";
import { attemptText } from "../../../ui/attempts.ts";
import { LimitLetter } from "../../../ui/badge.tsx";
import { clockText, dayText, durationText, shortClockText } from "../../../ui/format.ts";
import { apart, LETTER, PHONE } from "./axis-labels.ts";
import { Cuts, Guides, pc } from "./guides.tsx";
import { headlineOf } from "./headline.ts";
import { Lane } from "./lane.tsx";
import { lengthText } from "./limits.ts";
import type { TimelineModel } from "./model.ts";
import { type Bracket, type LimitRow, limitRows } from "./rows.ts";
import { CUT_WIDTH, type Scale } from "./scale.ts";

const ROW = 34;

/** A job's life and its five limits, drawn in one picture that also reads as a table. */
export function Timeline({
  model,
  children,
}: {
  readonly model: TimelineModel;
  readonly children?: ComponentChildren;
}) {
  const rows = limitRows(model);
  return (
    <section class={`card tl${model.isPreview ? " previewing" : ""}`} aria-label="Deadline timeline">
      <Head model={model} />
      <div class="tl-row tl-axis">
        <div class="g" />
        <Axis model={model} />
      </div>
      <div class="tl-row tl-lane">
        <div class="g">
          <b>The job</b>
          <span class="by">attempt {attemptText(model.job)}</span>
        </div>
        <Lane model={model} />
        <div class="l" />
      </div>
      {rows.map((row) => (
        <Row key={row.name} row={row} model={model} />
      ))}
      {children || <Legend />}
      <AsTable rows={rows} model={model} />
    </section>
  );
}

function Head({ model }: { readonly model: TimelineModel }) {
  const { letter, label, value, chain } = headlineOf(model);
  return (
    <div class="tl-head">
      <div class="tl-count">
        <div class="k">
          {letter && <LimitLetter name={letter} as="next" />}
          {label}
        </div>
        <div class={value.length > 9 ? "v words" : "v"}>{value}</div>
      </div>
      <ol class="tl-next">
        {chain.map(({ title, text, tone, isMaybe }) => (
          <li key={title} class={`${tone ? `is-${tone}` : ""}${isMaybe ? " maybe" : ""}`}>
            <b>{title}</b>
            <span title={text}>{text}</span>
          </li>
        ))}
      </ol>
    </div>
  );
}

/** Half as wide as the pill that says what time it is, in per cent. */
const PILL = 6.5;
/** Near an edge of the plot the pill stands beside its line, not over the edge: by as many pixels of 600. */
const ASIDE = 26;
const asideOf = (x: number) => (x < 2 * PILL ? ASIDE : x > 100 - 2 * PILL ? -ASIDE : 0);

function Axis({ model: { scale, now, endedAt } }: { readonly model: TimelineModel }) {
  const nowAt = scale.x(now);
  const isLong = scale.until - scale.from > 36 * 3_600_000;
  const [first = 0, second = Number.POSITIVE_INFINITY] = scale.ticks;
  const isFine = second - first < 60_000;
  const text = (at: number) =>
    isLong
      ? `${dayText(at).slice(0, 3)} ${shortClockText(at)}`
      : at % 1_000 !== 0
        ? `.${String(at % 1_000).padStart(3, "0")}`
        : isFine
          ? clockText(at)
          : shortClockText(at);
  const cuts = scale.cuts.map((cut) => ({
    at: cut.from,
    x: cut.x + CUT_WIDTH / 2,
    text: durationText(cut.to - cut.from),
  }));
  const ticks = scale.ticks.map((at) => ({ at, x: scale.x(at), text: text(at) }));
  const inside = ticks.filter(({ x }) => x > 1 && x < 97);
  const aside = asideOf(nowAt);
  const pill = (by: number) => {
    const middle = nowAt + (aside / 6) * by;
    return endedAt === null ? [[middle - PILL * by, middle + PILL * by] as const] : [];
  };
  const labelled = new Set(apart([...cuts, ...inside], pill(1)));
  const onPhone = new Set(
    apart(
      [...cuts, ...inside].filter(({ x }) => x > 6 && x < 94),
      pill(PHONE),
      LETTER * PHONE,
    ),
  );
  const classOf = (label: (typeof cuts)[number]) => (onPhone.has(label) ? undefined : "wide");
  return (
    <svg class="p" height="34" aria-hidden="true">
      {ticks.map((tick) => (
        <g key={tick.at}>
          <line class="g-grid" x1={pc(tick.x)} x2={pc(tick.x)} y1="26" y2="34" />
          {labelled.has(tick) && (
            <text class={classOf(tick)} x={pc(tick.x)} y="20" text-anchor="middle">
              {tick.text}
            </text>
          )}
        </g>
      ))}
      {cuts
        .filter((cut) => labelled.has(cut))
        .map((cut) => (
          <text key={cut.at} class={classOf(cut)} x={pc(cut.x)} y="20" text-anchor="middle">
            {cut.text}
          </text>
        ))}
      {endedAt === null && (
        <svg aria-hidden="true" x={pc(nowAt)} y="5" overflow="visible">
          <rect class="nowpill" x={aside - 34} width="68" height="20" rx="10" />
          <text class="now" x={aside} y="14" text-anchor="middle">
            {clockText(now)}
          </text>
        </svg>
      )}
    </svg>
  );
}

function Row({ row, model }: { readonly row: LimitRow; readonly model: TimelineModel }) {
  const { name, left, letter } = row;
  const rule = model.limits.rules[name];
  const [strong, rest] = left;
  return (
    <div class={`tl-row limit${letter === "next" ? " next" : ""}`}>
      <div class="g">
        <LimitLetter name={name} as={letter} />
        <b>{name}</b>
        <span class="len" title={rule.value}>
          {lengthText(rule.value)}
        </span>
        <span
          class="by"
          title={rule.others === "" ? `Set by ${rule.by}` : `Set by ${rule.by}; ${rule.others}`}
        >
          by {name === "heartbeat" && model.limits.isBeatenByWorker ? "worker" : rule.by}
        </span>
      </div>
      <svg class="p" height={ROW} role="img" aria-label={`${name} ${rule.value}, ${strong} ${rest}`}>
        <Guides model={model} height={ROW} />
        {row.silences.map(({ from, to }) => (
          <line
            key={from}
            class="gone"
            x1={pc(model.scale.x(from))}
            x2={pc(model.scale.x(to))}
            y1="17"
            y2="17"
          />
        ))}
        {row.beats.map((at) => (
          <circle key={at} class="beat" cx={pc(model.scale.x(at))} cy="17" r="2.5" />
        ))}
        {row.brackets.map((bracket, index) => (
          <BracketLine
            key={bracket.from}
            bracket={bracket}
            scale={model.scale}
            until={row.brackets[index + 1]?.from ?? null}
          />
        ))}
        <Cuts scale={model.scale} height={ROW} />
      </svg>
      <div class="l">
        <span>
          {strong !== "" && <b>{strong}</b>} {rest}
        </span>
      </div>
    </div>
  );
}

function BracketLine({
  bracket,
  scale,
  until,
}: {
  readonly bracket: Bracket;
  readonly scale: Scale;
  /** Where the next one begins. */
  readonly until: number | null;
}) {
  const { from, to, used, tone, isGhost, isOpen, isHard, note } = bracket;
  const x = scale.x(from);
  const end = scale.x(to);
  const ghost = isGhost ? " ghost" : "";
  const isCutOff = to > scale.until;
  const room = (until === null ? 100 : scale.x(until)) - end;
  const width = (note?.length ?? 0) * LETTER + 1;
  const inside = end - x > width + 4 && (used === undefined || end - scale.x(used) > width + 2);
  const isBehind = room > width && !inside;
  const [noteFrom, noteTo] = isBehind ? [end, end + width] : [end - width, end];
  const isHidden = scale.cuts.some((cut) => cut.x < noteTo && cut.x + CUT_WIDTH > noteFrom);
  return (
    <g>
      <line class={`br${ghost}`} x1={pc(x)} x2={pc(end)} y1="17" y2="17" />
      <line class={`br-cap${ghost}`} x1={pc(x)} x2={pc(x)} y1="12" y2="22" />
      {!isOpen && !isCutOff && (
        <line
          class={`br-cap${isHard ? " hard" : ghost}`}
          x1={pc(end)}
          x2={pc(end)}
          y1={isHard ? 10 : 12}
          y2={isHard ? 24 : 22}
        />
      )}
      {(isOpen || isCutOff) && (
        <svg aria-hidden="true" x={pc(end)} overflow="visible">
          <path class="br-open" d="M-7 12l6 5-6 5" />
        </svg>
      )}
      {used !== undefined && used > from && (
        <line class={`br-used ${tone}`} x1={pc(x)} x2={pc(scale.x(Math.min(used, to)))} y1="17" y2="17" />
      )}
      {note && !isHidden && (isBehind || inside) && (
        <text
          class={`wide halo ${isGhost ? "" : tone === "soft" || tone === "force" ? tone : ""}`}
          x={pc(isBehind ? end + 0.8 : end - (isOpen || isCutOff ? 2.4 : 0.8))}
          y="21"
          text-anchor={isBehind ? "start" : "end"}
        >
          {note}
        </text>
      )}
    </g>
  );
}

function Legend() {
  const items: readonly (readonly [string, ComponentChildren])[] = [
    ["waiting", <rect key="1" class="seg-wait" x=".5" y=".5" width="21" height="9" rx="2" />],
    ["running", <rect key="2" class="seg-run" width="22" height="10" rx="2" />],
    ["may still run", <rect key="3" class="seg-run-future" x=".5" y=".5" width="21" height="9" rx="2" />],
    [
      "grace",
      <rect key="4" class="seg-grace" fill="url(#hatch)" x=".5" y=".5" width="21" height="9" rx="2" />,
    ],
    ["backoff", <line key="5" class="seg-backoff" x1="1" x2="21" y1="5" y2="5" />],
    ["predicted", <rect key="6" class="seg-ghost" x=".5" y=".5" width="21" height="9" rx="2" />],
  ];
  return (
    <div class="tl-foot">
      {items.map(([name, drawing]) => (
        <span key={name}>
          <svg aria-hidden="true">{drawing}</svg>
          {name}
        </span>
      ))}
    </div>
  );
}

function AsTable({ rows, model }: { readonly rows: readonly LimitRow[]; readonly model: TimelineModel }) {
  return (
    <div class="sr">
      <table>
        <caption>Limits of this job</caption>
        <thead>
          <tr>
            <th>Limit</th>
            <th>Length</th>
            <th>Set by</th>
            <th>State</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ name, left }) => (
            <tr key={name}>
              <td>{name}</td>
              <td>{model.limits.rules[name].value}</td>
              <td>{model.limits.rules[name].by}</td>
              <td>{left.join(" ")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
