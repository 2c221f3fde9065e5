import { useEffect, useRef } from "preact/hooks";
import { JOB_EVENT_NAMES } from "../../../ojs/event-names.ts";
import { part } from "../../api/client.ts";
import { openLine } from "../../state/live.ts";
import { after } from "../../system.ts";

/** A handler may report progress many times a second; the page reads at most this often. */
const AT_MOST_EVERY = 500;

/** Calls when something happens to a job, soon and not too often. */
export function useJobEvents(id: string, onEvent: () => void): void {
  const latest = useRef(onEvent);
  latest.current = onEvent;
  useEffect(() => {
    let cancel: (() => void) | undefined;
    const close = openLine(`/jobs/${part(id)}/events`, {
      names: JOB_EVENT_NAMES,
      onEvent: () => {
        cancel ??= after(AT_MOST_EVERY, () => {
          cancel = undefined;
          latest.current();
        });
      },
    });
    return () => {
      cancel?.();
      close();
    };
  }, [id]);
}
