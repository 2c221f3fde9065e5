/** What a command's exit code means; docs/cli.md is generated from this table. */
export const EXITS = {
  ok: { code: 0, says: "done" },
  failed: {
    code: 1,
    says: "failed: no such job, a state that does not allow it, or not everything was done",
  },
  usage: { code: 2, says: "wrong usage: an unknown command or option, a value that is not valid" },
  unreachable: { code: 3, says: "the store or the server cannot be reached, or failed" },
  refused: { code: 4, says: "refused: no key, a wrong key, or a role that may not do it" },
  interrupted: { code: 130, says: "stopped by Ctrl-C" },
} as const;

export type Exit = keyof typeof EXITS;

/** Ends a command with one line on standard error and an exit code; without a message nothing is printed. */
export class CommandFailed extends Error {
  override readonly name = "CommandFailed";
  readonly exit: Exit;

  constructor(exit: Exit, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exit = exit;
  }
}
