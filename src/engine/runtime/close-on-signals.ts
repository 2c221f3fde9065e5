import { refuse, refuseUnknownKeys } from "../../core/errors.ts";
import type { Duration } from "../../core/time.ts";
import type { Logger } from "../../ports/log.ts";

export interface CloseOnSignalsOptions {
  /** How long running jobs may go on after the signal. Default: the `drain` of each worker. */
  readonly drain?: Duration;
  /** Default SIGTERM and SIGINT. */
  readonly signals?: readonly NodeJS.Signals[];
}

/** The part of `process` that this needs. */
interface SignalSource {
  on(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
  off(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
}

/**
 * Calls `close` at the first signal. The listeners stay until it has ended: without them, a second signal would end the
 * process while jobs run. Returns a function that removes them.
 */
export function closeOnSignals(
  options: CloseOnSignalsOptions,
  logger: Logger,
  close: () => Promise<void>,
  source: SignalSource = process,
): () => void {
  refuseUnknownKeys(options, "closeOnSignals", ["drain", "signals"]);
  const { signals = ["SIGTERM", "SIGINT"] } = options;
  if (!Array.isArray(signals) || signals.length === 0)
    throw refuse("invalid_option", "closeOnSignals.signals", signals, 'list signals, such as ["SIGTERM"]');
  let isClosing = false;
  const remove = () => {
    for (const signal of signals) source.off(signal, onSignal);
  };
  const onSignal = (signal: NodeJS.Signals) => {
    if (isClosing) {
      logger.info({ signal }, "the engine is closing already; this signal changes nothing");
      return;
    }
    isClosing = true;
    logger.info({ signal }, "closing the engine");
    close()
      .catch((error) => logger.error({ error }, "the engine could not be closed"))
      .finally(remove);
  };
  for (const signal of signals) source.on(signal, onSignal);
  return remove;
}
