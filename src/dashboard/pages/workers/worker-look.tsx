import type { Worker } from "../../../ojs/replies/wire-replies.ts";
import { Badge } from "../../ui/badge.tsx";

const LOOKS = {
  running: { mark: "open", tone: "done", word: "Works" },
  quiet: { mark: "paused", tone: "soft", word: "Quiet" },
  terminate: { mark: "cancelled", tone: "off", word: "Stops" },
  stale: { mark: "silent", tone: "force", word: "Silent" },
} as const;

export function WorkerBadge({ worker }: { readonly worker: Pick<Worker, "state"> }) {
  return <Badge look={LOOKS[worker.state] ?? { mark: "open", tone: "off", word: worker.state }} />;
}
