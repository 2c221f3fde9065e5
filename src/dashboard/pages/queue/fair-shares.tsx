import { useState } from "preact/hooks";
import type { Shares } from "../../../ojs/replies/settings-replies.ts";
import type { FairRules, Queue, QueueConfiguration } from "../../../ojs/replies/wire-replies.ts";
import { configureQueue } from "../../api/operations.ts";
import { useResource } from "../../api/resource.ts";
import { readShares } from "../../api/settings.ts";
import { whyNot } from "../../state/session.ts";
import { ActionForm } from "../../ui/action-form.tsx";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Choice, TextArea, TextField } from "../../ui/fields.tsx";
import { countText, percentText, plural } from "../../ui/format.ts";
import { Meter } from "../../ui/meter.tsx";
import { type Column, NAME_COLUMN, Table } from "../../ui/table.tsx";
import { Time } from "../../ui/time.tsx";
import type { FormEnd } from "../../ui/use-form.ts";
import { readWeights, weightsText } from "./weights.ts";

interface FairProps {
  readonly queue: Queue;
  readonly onChange: () => void;
}

/** Whose turn it is: what waits of each fair key, and which share of the starts its weight gives it. */
export function FairShares({ queue, onChange }: FairProps) {
  const { fair } = queue.configuration as QueueConfiguration;
  const [isAsked, setAsked] = useState(false);
  const shares = useResource(
    fair ? `shares ${queue.name}` : null,
    (signal) => readShares(queue.name, signal),
    {
      live: 3_000,
    },
  );
  return (
    <Card
      title="Fair turns"
      note={fair ? (shares.data ? keysWords(shares.data) : undefined) : "off"}
      aside={
        <Button small whyNot={whyNot("operate")} onClick={() => setAsked(true)}>
          {fair ? "Change…" : "Take turns…"}
        </Button>
      }
    >
      {fair ? (
        <Keys shares={shares.data} fair={fair} />
      ) : (
        <p class="pad t2">
          First come, first served. If one customer may fill this queue, let its customers take turns.
        </p>
      )}
      {isAsked && (
        <FairForm
          queue={queue}
          fair={fair}
          onClose={() => setAsked(false)}
          onDone={() => {
            setAsked(false);
            onChange();
          }}
        />
      )}
    </Card>
  );
}

const keysWords = ({ items, has_more }: Shares) =>
  items.length === 0
    ? "on, nothing waits"
    : `${has_more ? "more than " : ""}${plural(items.length, "key takes turns", "keys take turns")}`;

const SHOWN = 20;

function Keys({ shares, fair }: { readonly shares: Shares | undefined; readonly fair: FairRules }) {
  const { items = [] } = shares ?? {};
  return (
    <>
      <p class="pad t2">
        Claims take jobs from each key in turn,{" "}
        {fair.strategy === "round-robin" ? "the same from all" : "as many as its weight"}. Jobs that name no
        key {fair.by === undefined ? "share one turn" : `take it from ${fair.by}`}.
      </p>
      {items.length > 0 && (
        <Table
          label="Fair keys"
          rows={items.slice(0, SHOWN)}
          columns={COLUMNS}
          idOf={({ key }) => key}
          class="flat"
        />
      )}
      {items.length > SHOWN && (
        <p class="pad t3">
          The {SHOWN} keys with the most jobs of {shares?.has_more ? "more than " : ""}
          {countText(items.length)}.
        </p>
      )}
    </>
  );
}

type FairKey = Shares["items"][number];

const COLUMNS: readonly Column<FairKey>[] = [
  {
    id: "key",
    title: "Key",
    ...NAME_COLUMN,
    render: ({ key }) =>
      key === "" ? (
        <span class="t3">without a key</span>
      ) : (
        <span class="name mono clip" title={key}>
          {key}
        </span>
      ),
  },
  { id: "weight", title: "Weight", isNumber: true, render: ({ weight }) => weight },
  {
    id: "share",
    title: "Share of starts",
    render: ({ share }) => (
      <span class="stack-meter">
        <span>{percentText(share)}</span>
        <Meter share={share} label={`${percentText(share)} of the starts`} />
      </span>
    ),
  },
  {
    id: "waiting",
    title: "Wait",
    isNumber: true,
    render: ({ waiting }) => `${waiting >= MOST_COUNTED ? "at least " : ""}${countText(waiting)}`,
  },
  {
    id: "next",
    title: "Next is due since",
    isNumber: true,
    class: "t2 nowrap",
    render: ({ next_due_at }) => <Time at={next_due_at} />,
  },
];

/** The server counts no further. */
const MOST_COUNTED = 10_000;

interface FormProps extends FormEnd {
  readonly queue: Queue;
  readonly fair: FairRules | undefined;
}

function FairForm({ queue, fair, ...end }: FormProps) {
  const [strategy, setStrategy] = useState<string>(fair?.strategy ?? "weighted");
  const [by, setBy] = useState(fair?.by ?? "");
  const [text, setText] = useState(() => weightsText(fair?.weights));
  const { weights, error } = readWeights(text);
  const isOn = strategy !== "off";
  const hasWeights = strategy === "weighted";
  const rules = {
    ...(by.trim() !== "" && { by: by.trim() }),
    strategy,
    ...(hasWeights && Object.keys(weights).length > 0 && { weights }),
    ...(fair?.default_weight !== undefined && { default_weight: fair.default_weight }),
  };
  return (
    <ActionForm
      title={`Turns of ${queue.name}`}
      action={isOn ? "Let them take turns" : "First come, first served"}
      blocked={isOn && hasWeights ? error : undefined}
      act={(reason) => configureQueue(queue.name, { fair: isOn ? rules : null }, reason)}
      said={
        isOn ? `Queue ${queue.name} takes jobs in turn.` : `Queue ${queue.name} is first come, first served.`
      }
      {...end}
    >
      <p>It holds at once for all jobs that wait. Priorities still go first.</p>
      <Choice
        label="Who is next"
        value={strategy}
        options={[
          ["weighted", "each key in turn, as many as its weight"],
          ["round-robin", "each key in turn, one each"],
          ["off", "first come, first served"],
        ]}
        onChange={setStrategy}
      />
      {isOn && (
        <TextField
          label="Key of jobs that name none"
          value={by}
          onInput={setBy}
          isMono
          options={["type", "meta.tenant_id"]}
          placeholder="they share one turn"
          hint="type, or a field of meta such as meta.tenant_id."
        />
      )}
      {hasWeights && (
        <TextArea
          label="Weights, a key in each line; others have 1"
          value={text}
          onInput={setText}
          rows={4}
          error={error}
        />
      )}
    </ActionForm>
  );
}
