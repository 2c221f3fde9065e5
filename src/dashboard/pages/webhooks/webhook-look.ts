import type { Delivery, DeliveryState, Webhook } from "../../../ojs/replies/settings-replies.ts";
import { now } from "../../state/clock.ts";
import { durationText } from "../../ui/format.ts";

/** How a subscription is: switched off, resting because its endpoint fails, failing, or well. */
export function webhookLook({ active, circuit, last_failure_at, last_delivery_at }: Webhook) {
  if (!active) return { mark: "paused", tone: "off", word: "Off" } as const;
  if (circuit.state === "open") return { mark: "discarded", tone: "force", word: "Resting" } as const;
  if (circuit.state === "half-open") return { mark: "retry", tone: "soft", word: "Trying again" } as const;
  const failed = last_failure_at === null ? 0 : Date.parse(last_failure_at);
  const delivered = last_delivery_at === null ? 0 : Date.parse(last_delivery_at);
  if (failed > delivered) return { mark: "grace", tone: "soft", word: "Failing" } as const;
  if (delivered === 0) return { mark: "waiting", tone: "wait", word: "No call yet" } as const;
  return { mark: "done", tone: "done", word: "Delivers" } as const;
}

/** What somebody should know about its endpoint; undefined where all is well. */
export function webhookTrouble({ active, circuit, last_error }: Webhook): string | undefined {
  if (!active || circuit.state === "closed") return undefined;
  const rest = circuit.until === null ? 0 : Date.parse(circuit.until) - now.value;
  const again =
    circuit.state === "open" && rest > 0
      ? `It is called again in ${durationText(rest)}`
      : "One call tries it";
  return `Calls failed again and again${last_error === null ? "" : ` (${last_error})`}. ${again}; deliveries wait, and none is lost.`;
}

export const DELIVERY_LOOKS = {
  waiting: { mark: "waiting", tone: "wait", word: "Waiting" },
  calling: { mark: "running", tone: "run", word: "Calling" },
  retrying: { mark: "retry", tone: "soft", word: "Retrying" },
  delivered: { mark: "done", tone: "done", word: "Delivered" },
  dead: { mark: "dead", tone: "force", word: "Dead" },
  cancelled: { mark: "cancelled", tone: "off", word: "Cancelled" },
} as const satisfies Record<DeliveryState, unknown>;

/** What came of a delivery, in a line. */
export function deliveryWords({ response, errors, status }: Delivery): string {
  if (status === "delivered" && response)
    return `${response.status_code} after ${durationText(response.response_time_ms)}`;
  return (
    errors.at(-1)?.message ?? (status === "calling" ? "The endpoint is being called." : "Not called yet.")
  );
}

/** The host and path, without what may be a secret in the query. */
export function shortUrl(url: string): string {
  const [plain = url] = url.split("?");
  return plain.replace(/^https?:\/\//, "");
}
