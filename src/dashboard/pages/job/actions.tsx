import { useState } from "preact/hooks";
import type { Job, Right } from "../../../ojs/replies/wire-replies.ts";
import { useKeys } from "../../state/keys.ts";
import { query, setQuery } from "../../state/router.ts";
import { whyNot } from "../../state/session.ts";
import { Button, copyText } from "../../ui/button.tsx";
import { Menu } from "../../ui/menu.tsx";
import { CancelForm, CopyForm, PriorityForm, RetryForm, RunNowForm } from "./forms.tsx";

/** The form that is open stands in the URL, so a link can lead somebody straight to it. */
const FORMS = {
  cancel: CancelForm,
  retry: RetryForm,
  priority: PriorityForm,
  copy: CopyForm,
  run: RunNowForm,
} as const;
type FormName = keyof typeof FORMS | "extend";

interface Offer {
  readonly form: FormName;
  readonly label: string;
  readonly right: Right;
  /** Why the job's state does not allow it. */
  readonly whyNot: string | undefined;
}

const WAITING = new Set<Job["state"]>(["available", "scheduled", "pending", "retryable"]);

const RUNNABLE = new Set<Job["state"]>(["scheduled", "retryable", "pending"]);

function offersOf({ state }: Job): Record<FormName, Offer> {
  const isOver = state === "completed" || state === "discarded" || state === "cancelled";
  const over = isOver ? `It is ${state}.` : undefined;
  return {
    extend: { form: "extend", label: "Extend…", right: "operate", whyNot: over },
    retry: {
      form: "retry",
      label: "Retry…",
      right: "operate",
      whyNot: state === "discarded" ? undefined : "Only a discarded job is retried.",
    },
    cancel: { form: "cancel", label: "Cancel…", right: "operate", whyNot: over },
    copy: { form: "copy", label: "Copy and enqueue…", right: "enqueue", whyNot: undefined },
    priority: {
      form: "priority",
      label: "Change priority…",
      right: "operate",
      whyNot: WAITING.has(state) ? undefined : "Only a waiting job has a place in a queue.",
    },
    run: {
      form: "run",
      label: "Run now…",
      right: "operate",
      whyNot: RUNNABLE.has(state)
        ? undefined
        : "Only a job that waits for its time or a limit can be run now.",
    },
  };
}

const blocked = ({ right, whyNot: state }: Offer) => whyNot(right) ?? state;

export function JobActions({ job, onChange }: { readonly job: Job; readonly onChange: () => void }) {
  const offers = offersOf(job);
  const isOver = offers.cancel.whyNot !== undefined;
  const open = (form: FormName) => setQuery({ form }, { isStep: false });
  const close = () => setQuery({ form: null }, { isStep: false });
  const key = (keys: string, form: FormName, says: string) => ({
    keys,
    says,
    run: () => !blocked(offers[form]) && open(form),
  });
  useKeys([
    key("e", "extend", "Extend"),
    key("r", "retry", "Retry"),
    key("c", "cancel", "Cancel the job"),
    key("n", "run", "Run now"),
    { keys: "y", says: "Copy the id", run: () => void copyText(job.id, "the id") },
  ]);
  const Form = FORMS[query.value.get("form") as keyof typeof FORMS];
  const isRunnable = offers.run.whyNot === undefined;
  const rest = (isOver ? ["priority", "run", "extend"] : ["priority", "run", "retry"]) as FormName[];
  return (
    <>
      {isOver ? (
        <Button
          icon="undo"
          hint="r"
          kind={job.state === "discarded" ? "primary" : "plain"}
          whyNot={blocked(offers.retry)}
          onClick={() => open("retry")}
        >
          {offers.retry.label}
        </Button>
      ) : (
        <Button icon="extend" hint="e" whyNot={blocked(offers.extend)} onClick={() => open("extend")}>
          {offers.extend.label}
        </Button>
      )}
      {isRunnable && (
        <Button icon="play" hint="n" whyNot={blocked(offers.run)} onClick={() => open("run")}>
          {offers.run.label}
        </Button>
      )}
      <Button icon="copy" whyNot={blocked(offers.copy)} onClick={() => open("copy")}>
        {offers.copy.label}
      </Button>
      {!isOver && (
        <Button icon="x" kind="danger" whyNot={blocked(offers.cancel)} onClick={() => open("cancel")}>
          {offers.cancel.label}
        </Button>
      )}
      <MoreActions offers={rest.map((form) => offers[form])} onOpen={open} />
      {Form && (
        <Form
          job={job}
          onClose={close}
          onDone={() => {
            close();
            onChange();
          }}
        />
      )}
    </>
  );
}

interface MoreProps {
  readonly offers: readonly Offer[];
  readonly onOpen: (form: FormName) => void;
}

function MoreActions({ offers, onOpen }: MoreProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <Menu label="More actions" isOpen={isOpen} onToggle={setOpen}>
      {offers.map((offer) => (
        <button
          key={offer.form}
          type="button"
          disabled={blocked(offer) !== undefined}
          title={blocked(offer)}
          onClick={() => onOpen(offer.form)}
        >
          {offer.label}
        </button>
      ))}
      <button type="button" onClick={() => void copyText(location.href, "the link")}>
        Copy link
      </button>
    </Menu>
  );
}
