/** The logger a user may hand in; pino, console and the like fit. Nothing secret is ever passed to it. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** The default: a library does not write to anybody's terminal unasked. */
export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} };
