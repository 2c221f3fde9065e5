import { callSafely } from "../core/user-values.ts";

/** The logger that a user may pass in. pino and console have this shape. No secret is ever passed to it. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Discards every line. */
export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/** The logger of a user. A line that it cannot write is lost, and nothing else: there is nobody left to tell. */
export function guardedLogger(logger: Logger): Logger {
  const lost = () => {};
  return {
    debug: (fields, message) => callSafely(() => logger.debug(fields, message), lost),
    info: (fields, message) => callSafely(() => logger.info(fields, message), lost),
    warn: (fields, message) => callSafely(() => logger.warn(fields, message), lost),
    error: (fields, message) => callSafely(() => logger.error(fields, message), lost),
  };
}
