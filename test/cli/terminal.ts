/** Runs the command inside a pseudo-terminal, which Python has and Node has not. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { stripVTControlCharacters } from "node:util";
import { bareEnvironment } from "../server/command.ts";
import { BUILT_MAIN } from "./stage.ts";

/** Hands bytes on in both directions. Input that begins with NUL resizes the window or ends the command instead. */
const SCRIPT = `
import fcntl, os, pty, select, struct, sys, termios
def resize(columns, rows):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
pid, terminal = pty.fork()
if pid == 0:
    sys.stdin.readline()
    os.execvp(sys.argv[3], sys.argv[3:])
resize(int(sys.argv[1]), int(sys.argv[2]))
os.write(terminal, b"\\n")
inputs = [terminal, 0]
while terminal in inputs:
    for source in select.select(inputs, [], [])[0]:
        try:
            data = os.read(source, 65536)
        except OSError:
            data = b""
        if not data:
            inputs.remove(source)
        elif source == terminal:
            os.write(1, data)
        elif data == b"\\0end":
            os.kill(pid, 15)
        elif data[:1] == b"\\0":
            resize(*map(int, data[1:].split(b",")))
        else:
            os.write(terminal, data)
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.exit(128 - code if code < 0 else code)
`;

export interface InTerminal {
  readonly ended: Promise<{ readonly code: number; readonly text: string }>;
  /** Resolves once everything that was printed matches, and rejects if the command ends before that. */
  shows(pattern: RegExp): Promise<void>;
  /** Resolves once the screen as it was drawn last matches. */
  draws(pattern: RegExp): Promise<void>;
  /** The last whole drawing, without colours. */
  screen(): string;
  type(keys: string): void;
  resize(columns: number, rows: number): void;
  /** Sends SIGTERM to the command. */
  terminate(): void;
}

interface TerminalOptions {
  readonly columns?: number;
  readonly rows?: number;
  readonly env?: NodeJS.ProcessEnv;
}

export function inTerminal(flags: readonly string[], options: TerminalOptions = {}): InTerminal {
  const { columns = 80, rows = 24, env } = options;
  const words = ["-c", SCRIPT, String(columns), String(rows), process.execPath, BUILT_MAIN, ...flags];
  const { NO_COLOR: _, ...bare } = bareEnvironment();
  const child = spawn("python3", words, {
    env: { ...bare, TERM: "xterm", ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  let hasEnded = false;
  const ended = once(child, "close").then(([code]) => {
    hasEnded = true;
    return { code: code as number, text };
  });
  const screen = () => {
    // Each drawing begins at the upper left corner and ends with what clears the rest.
    const drawings = text.split("\u001b[H").slice(1);
    const whole = drawings.findLast((drawing) => drawing.includes("\u001b[J")) ?? "";
    return stripVTControlCharacters(whole).replaceAll("\r", "");
  };
  const until = async (look: () => string, pattern: RegExp) => {
    while (!pattern.test(look())) {
      if (hasEnded) throw new Error(`the command ended without ${pattern}: ${look()}`);
      await Promise.race([once(child.stdout, "data"), ended]);
    }
  };
  return {
    ended,
    screen,
    shows: (pattern) => until(() => text, pattern),
    draws: (pattern) => until(screen, pattern),
    type: (keys) => void child.stdin.write(keys),
    resize: (toColumns, toRows) => void child.stdin.write(`\0${toColumns},${toRows}`),
    terminate: () => void child.stdin.write("\0end"),
  };
}
