import { writeSync } from "node:fs";
import { emitKeypressEvents } from "node:readline";

const ENTER = "\u001b[?1049h\u001b[?25l";
const LEAVE = "\u001b[?25h\u001b[?1049l";
const SIGNALS = [
  ["SIGTERM", 143],
  ["SIGHUP", 129],
] as const;

interface Keypress {
  readonly name?: string;
  readonly ctrl?: boolean;
  readonly sequence?: string;
}

/** The terminal as one screen: raw keys, no cursor, the second buffer. Every end of the process restores it. */
export class Terminal {
  readonly #onKey: (key: string) => void;
  readonly #onResize: () => void;
  #isOpen = false;
  readonly #restore = () => this.leave();
  readonly #keypress = (text: string | undefined, key: Keypress) => this.#press(text, key);
  readonly #signals = SIGNALS.map(([signal, code]) => [signal, () => this.#end(code)] as const);

  constructor(onKey: (key: string) => void, onResize: () => void) {
    this.#onKey = onKey;
    this.#onResize = onResize;
  }

  get size() {
    return { columns: process.stdout.columns || 80, rows: process.stdout.rows || 24 };
  }

  enter(): void {
    this.#isOpen = true;
    // A crash must show its stack on the normal screen, so the screen is left before the stack is printed.
    process.on("uncaughtExceptionMonitor", this.#restore);
    process.on("exit", this.#restore);
    for (const [signal, end] of this.#signals) process.on(signal, end);
    emitKeypressEvents(process.stdin);
    process.stdin.setRawMode(true);
    process.stdin.on("keypress", this.#keypress);
    process.stdin.resume();
    process.stdout.on("resize", this.#onResize);
    process.stdout.write(ENTER);
  }

  /** Writes the lines over the old ones; no line is cleared first, so nothing flickers. */
  draw(lines: readonly string[]): void {
    if (this.#isOpen)
      process.stdout.write(`\u001b[H${lines.map((line) => `${line}\u001b[K`).join("\r\n")}\u001b[J`);
  }

  leave(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    process.off("uncaughtExceptionMonitor", this.#restore);
    process.off("exit", this.#restore);
    for (const [signal, end] of this.#signals) process.off(signal, end);
    process.stdin.off("keypress", this.#keypress);
    process.stdout.off("resize", this.#onResize);
    process.stdin.setRawMode(false);
    process.stdin.pause();
    // Written at once: after a crash nothing asynchronous runs any more.
    writeSync(process.stdout.fd, LEAVE);
  }

  #end(code: number): void {
    this.leave();
    process.exit(code);
  }

  #press(text: string | undefined, { name, ctrl, sequence }: Keypress): void {
    // In raw mode the terminal sends Ctrl-C as a character.
    if (ctrl && name === "c") process.kill(process.pid, "SIGINT");
    else if (!ctrl) this.#onKey(text !== undefined && /^[!-~]$/.test(text) ? text : (name ?? sequence ?? ""));
  }
}
