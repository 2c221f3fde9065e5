import { useState } from "preact/hooks";
import type { Advice } from "../../../ojs/replies/wire-replies.ts";
import { readAdvice } from "../../api/operations.ts";
import { hrefWith, query, setQuery } from "../../state/router.ts";
import { Button, CopyButton, LinkButton } from "../../ui/button.tsx";
import { Callout } from "../../ui/callout.tsx";
import { Card } from "../../ui/card.tsx";
import { TextField } from "../../ui/fields.tsx";
import { countText, durationText, limitText, percentText, plural, readLimit } from "../../ui/format.ts";
import { powersOf, Scale, shareOf, valueAt } from "./scale.tsx";
import { useRested } from "./use-rested.ts";

const STEPS = 400;
/** The server is asked when the slider has rested for this long. */
const REST = 200;

/** A duration a person would write: two digits of it. */
function roundLimit(value: number): number {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, value))) - 1);
  const whole = Math.max(1, Math.round(value / unit) * unit);
  return whole >= 10_000 ? Math.round(whole / 1_000) * 1_000 : whole;
}

function useAnswer(type: string, timeout: number) {
  const key = JSON.stringify([type, timeout]);
  const { answer, error } = useRested(key, REST, () => readAdvice({ type, timeout }));
  return { answer: answer?.items[0]?.what_if, error };
}

/** What another limit would have cut off, of the runs that were really seen. */
export function WhatIf({ advice }: { readonly advice: Advice }) {
  const { type, timeout_ms, suggested_timeout_ms, run } = advice;
  const powers = powersOf(advice);
  const start = suggested_timeout_ms ?? timeout_ms ?? run?.p99 ?? 30_000;
  const asked = Number(query.value.get("timeout")) || start;
  const [text, setText] = useState(limitText(Math.round(asked)));
  const { answer, error } = useAnswer(type, Math.round(asked));
  const choose = (value: number) => {
    setText(limitText(Math.round(value)));
    setQuery({ timeout: String(Math.round(value)) }, { isStep: false });
  };
  const isRead = readLimit(text) !== undefined;
  return (
    <div class="gap">
      <Card
        title={`What if ${type} had another limit?`}
        aside={
          <LinkButton small kind="ghost" icon="x" href={hrefWith({ type: null, timeout: null })}>
            Close
          </LinkButton>
        }
      >
        <div class="pad what-if">
          <Scale advice={advice} proposed={asked} />
          <label class="slide">
            <span class="sr">Attempt limit</span>
            <input
              type="range"
              min="0"
              max={STEPS}
              value={Math.round(shareOf(powers, asked) * STEPS)}
              aria-valuetext={durationText(asked)}
              onInput={(event) =>
                choose(roundLimit(valueAt(powers, Number(event.currentTarget.value) / STEPS)))
              }
            />
          </label>
          <p class="ends t3 small" aria-hidden="true">
            <span>{durationText(powers.low)}</span>
            <span>each step to the right is a multiple</span>
            <span>{durationText(powers.high)}</span>
          </p>
          <div class="rowf wrap">
            <TextField
              label="attempt"
              value={text}
              isMono
              onInput={(value) => {
                setText(value);
                const limit = readLimit(value);
                if (limit !== undefined) setQuery({ timeout: String(limit) }, { isStep: false });
              }}
              error={isRead ? undefined : "Such as 500ms, 30s or 5m."}
            />
            {timeout_ms !== null && (
              <Button onClick={() => choose(timeout_ms)}>{`As now: ${limitText(timeout_ms)}`}</Button>
            )}
            {suggested_timeout_ms !== null && (
              <Button
                onClick={() => choose(suggested_timeout_ms)}
              >{`As advised: ${limitText(suggested_timeout_ms)}`}</Button>
            )}
          </div>
          {error && <Callout tone="force">{error.message}</Callout>}
          <Answer answer={answer} asked={asked} type={type} />
        </div>
      </Card>
    </div>
  );
}

function Answer({
  answer,
  asked,
  type,
}: {
  readonly answer: Advice["what_if"];
  readonly asked: number;
  readonly type: string;
}) {
  const isStale = answer?.timeout_ms !== Math.round(asked);
  if (!answer) return <p class="t2">Counting…</p>;
  const { runs, would_cut, share, already_cut } = answer;
  const { at_least, at_most } = would_cut;
  const code = `timeouts: { attempt: "${limitText(answer.timeout_ms)}" }`;
  return (
    <div class={isStale ? "answer old" : "answer"} aria-live="polite">
      <p class="verdict">
        {at_most === 0
          ? `With ${limitText(answer.timeout_ms)}, none of ${plural(runs, "successful run")} would have been cut off.`
          : `With ${limitText(answer.timeout_ms)}, ${at_least === at_most ? countText(at_most) : `${countText(at_least)} to ${countText(at_most)}`} of ${plural(runs, "successful run")} would have been cut off: ${percentText(share)}.`}
      </p>
      {already_cut > 0 && (
        <p class="t2">
          {plural(already_cut, "attempt was", "attempts were")} cut off by the limit they had; how long they
          would have taken is not known.
        </p>
      )}
      <p class="rowf">
        <code>{code}</code> <CopyButton text={code} what={`the limit of ${type}`} />
      </p>
    </div>
  );
}
