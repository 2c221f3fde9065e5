import { useState } from "preact/hooks";
import type { AdaptiveWhatIf, Advice } from "../../../ojs/replies/wire-replies.ts";
import { replayAdvice } from "../../api/operations.ts";
import { CopyButton } from "../../ui/button.tsx";
import { Callout } from "../../ui/callout.tsx";
import { Card } from "../../ui/card.tsx";
import { Choice, TextField } from "../../ui/fields.tsx";
import { countText, limitText, percentText, plural, readLimit } from "../../ui/format.ts";
import { useRested } from "./use-rested.ts";

/** The server is asked when nobody has typed for this long. */
const REST = 300;
const QUANTILES = ["p50", "p90", "p95", "p99", "max"] as const;

interface Asked {
  readonly from: string;
  readonly times: string;
  readonly floor: string;
  readonly ceiling: string;
}

/** The rule that the fields say; undefined if one of them cannot be read. */
function ruleOf({ from, times, floor, ceiling }: Asked) {
  const floor_ms = readLimit(floor);
  const ceiling_ms = readLimit(ceiling);
  const factor = Number(times);
  const isRead = floor_ms && ceiling_ms && floor_ms <= ceiling_ms && factor >= 1 && factor <= 100;
  return isRead ? { from, times: factor, floor_ms, ceiling_ms } : undefined;
}

/** What a limit that follows the runs would have done to the runs that were really seen. */
export function Adaptive({ advice }: { readonly advice: Advice }) {
  const { type, adaptive } = advice;
  const [asked, setAsked] = useState<Asked>({
    from: adaptive?.from ?? "p99",
    times: String(adaptive?.times ?? 3),
    floor: limitText(adaptive?.floor_ms ?? 1_000),
    ceiling: limitText(adaptive?.ceiling_ms ?? 600_000),
  });
  const rule = ruleOf(asked);
  const { answer: advised, error } = useRested(rule && JSON.stringify([type, rule]), REST, () =>
    replayAdvice(type, rule as NonNullable<typeof rule>),
  );
  const answer = advised?.items[0]?.adaptive_what_if;
  const change = (part: Partial<Asked>) => setAsked({ ...asked, ...part });
  const wrong = (text: string) => (readLimit(text) ? undefined : "Such as 500ms, 30s or 5m.");
  return (
    <div class="gap">
      <Card title="What if its limit followed the runs?">
        <div class="pad what-if">
          <p class="t2">
            An adaptive limit is a multiple of what the runs of the last days took. It changes a step per
            hour, and nothing uses it unless the definition says so.
          </p>
          <div class="rowf wrap">
            <Choice
              label="from"
              value={asked.from}
              options={QUANTILES.map((name) => [name, name] as const)}
              onChange={(from) => change({ from })}
            />
            <TextField label="times" value={asked.times} isMono onInput={(times) => change({ times })} />
            <TextField
              label="floor"
              value={asked.floor}
              isMono
              onInput={(floor) => change({ floor })}
              error={wrong(asked.floor)}
            />
            <TextField
              label="ceiling"
              value={asked.ceiling}
              isMono
              onInput={(ceiling) => change({ ceiling })}
              error={wrong(asked.ceiling)}
            />
          </div>
          {!rule && <p class="t2">The floor must not be above the ceiling, and times is 1 to 100.</p>}
          {error && <Callout tone="force">{error.message}</Callout>}
          {answer ? <Answer answer={answer} type={type} /> : !error && <p class="t2">Replaying…</p>}
        </div>
      </Card>
    </div>
  );
}

function Answer({ answer, type }: { readonly answer: AdaptiveWhatIf; readonly type: string }) {
  const { rule, runs, would_cut, share, already_cut, changes } = answer;
  const { at_least, at_most } = would_cut;
  const cut = at_least === at_most ? countText(at_most) : `${countText(at_least)} to ${countText(at_most)}`;
  const code = `timeouts: { attempt: adaptive({ from: "${rule.from}", times: ${rule.times}, floor: "${limitText(rule.floor_ms)}", ceiling: "${limitText(rule.ceiling_ms)}" }) }`;
  return (
    <div class="answer" aria-live="polite">
      <p class="verdict">
        {at_most === 0
          ? `It would have cut off none of ${plural(runs, "successful run")}.`
          : `It would have cut off ${cut} of ${plural(runs, "successful run")}: ${percentText(share)}.`}
      </p>
      <p class="t2">
        {changes.length === 0
          ? `It would still be at its ceiling of ${limitText(answer.limit_ms)}: it needs ${plural(rule.samples, "run")} in a week, and begins with the hour after.`
          : `It would be ${limitText(answer.limit_ms)} now, after ${plural(changes.length, "change")} between ${limitText(answer.lowest_ms)} and ${limitText(answer.highest_ms)}.`}
        {already_cut > 0 &&
          ` ${plural(already_cut, "attempt was", "attempts were")} cut off by the limit they had.`}
      </p>
      <p class="rowf wrap">
        <code>{code}</code> <CopyButton text={code} what={`the adaptive limit of ${type}`} />
      </p>
    </div>
  );
}
