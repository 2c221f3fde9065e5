/** The logger a user may hand in; pino, console and the like fit. Nothing secret is ever passed to it. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** For tests, and for whoever wants to hear nothing. */
export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} };
