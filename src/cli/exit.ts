/** The exit codes of commands; docs/cli.md is generated from this table. */
export const EXITS = {
  ok: { code: 0, says: "done" },
  failed: {
    code: 1,
    says: "failed: no such job, its state does not allow the action, part of the work failed, or doctor found something wrong",
  },
  usage: { code: 2, says: "wrong usage: an unknown command or option, or an invalid value" },
  unreachable: { code: 3, says: "the store or the server cannot be reached, or failed" },
  refused: { code: 4, says: "refused: no key, a wrong key, or a role without the right" },
  interrupted: { code: 130, says: "stopped by Ctrl-C" },
} as const;

export type Exit = keyof typeof EXITS;

/** Ends a command with one line on standard error and an exit code. With an empty message it prints nothing. */
export class CommandFailed extends Error {
  override readonly name = "CommandFailed";
  readonly exit: Exit;

  constructor(exit: Exit, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exit = exit;
  }
}
