/** The logger that a user may pass in. pino and console have this shape. No secret is ever passed to it. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Discards every line. */
export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} };
