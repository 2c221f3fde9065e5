import { realSystem } from "../../engine/runtime/real-system.ts";
import { CommandFailed } from "../exit.ts";
import { whyText } from "../output/why-text.ts";
import type { TargetContext } from "../run-command.ts";
import type { Fields, Target } from "../target/target.ts";
import { type TopData, TopReader } from "./data.ts";
import { screenLines } from "./screen.ts";
import { type Pressed, press, START, type TopAction, type TopState } from "./state.ts";
import { Terminal } from "./terminal.ts";

/** Countdowns move this often; data is read less often. */
const DRAW_EVERY = 250;

/** Shows the screen until q or Ctrl-C. */
export async function runTop({ target, output, signal }: TargetContext, every: number): Promise<void> {
  const reader = new TopReader(target);
  // Before the screen is taken over, so that a store without an answer fails as every other command does.
  const screen = new Screen(target, reader, await reader.read(), every);
  output.hideProgress();
  signal.addEventListener("abort", () => screen.end(), { once: true });
  await screen.run();
  signal.throwIfAborted();
}

class Screen {
  readonly #target: Target;
  readonly #reader: TopReader;
  readonly #every: number;
  readonly #terminal: Terminal;
  readonly #ended = Promise.withResolvers<void>();
  #data: TopData;
  #state: TopState = START;
  #problem: string | null = null;
  #isReading = false;
  #readAt: number;
  #timer: { cancel(): void } | undefined;

  constructor(target: Target, reader: TopReader, data: TopData, every: number) {
    this.#target = target;
    this.#reader = reader;
    this.#data = data;
    this.#every = every;
    this.#readAt = realSystem.monotonic();
    this.#terminal = new Terminal(
      (key) => this.#press(key),
      () => this.#draw(),
    );
  }

  async run(): Promise<void> {
    this.#terminal.enter();
    try {
      this.#tick();
      await this.#ended.promise;
    } finally {
      this.#timer?.cancel();
      this.#terminal.leave();
    }
  }

  end(): void {
    this.#ended.resolve();
  }

  #tick(): void {
    this.#draw();
    if (realSystem.monotonic() - this.#readAt >= this.#every) void this.#read();
    this.#timer = realSystem.after(DRAW_EVERY, () => this.#tick(), { keepAlive: true });
  }

  /** A failed read leaves the old data on the screen and says so. */
  async #read(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      this.#data = await this.#reader.read();
      this.#problem = null;
    } catch (error) {
      this.#problem = error instanceof Error ? error.message : String(error);
    } finally {
      this.#isReading = false;
      this.#readAt = realSystem.monotonic();
    }
    this.#draw();
  }

  #draw(): void {
    const { size } = this.#terminal;
    const options = { ...size, name: this.#target.name, now: this.#target.now(), problem: this.#problem };
    this.#terminal.draw(screenLines(this.#data, this.#state, options));
  }

  #press(key: string): void {
    const { state, action }: Pressed = press(this.#state, key, this.#data);
    this.#state = state;
    if (action === "quit") this.end();
    else if (action === "refresh") void this.#read();
    else if (action) void this.#act(action);
    this.#draw();
  }

  async #act(action: TopAction): Promise<void> {
    try {
      const text = await carryOut(this.#target, action);
      if (action.name === "why") this.#state = { ...this.#state, mode: "page", page: text };
      else this.#state = { ...this.#state, message: text };
    } catch (error) {
      if (!(error instanceof CommandFailed)) throw error;
      this.#state = { ...this.#state, message: error.message };
    }
    await this.#read();
  }
}

/** Does what was confirmed, and says what was done. */
async function carryOut(target: Target, action: TopAction): Promise<string> {
  if ("queue" in action) {
    const path = `/ojs/v1/admin/queues/${encodeURIComponent(action.queue)}/${action.name}`;
    await target.send("POST", path, {});
    return `Queue ${action.queue} is ${action.name}d.`;
  }
  const path = `/ojs/v1/jobs/${encodeURIComponent(action.id)}`;
  if (action.name === "why") return whyText((await target.get(`${path}/why`)) as Fields, target.now());
  await target.send("POST", `${path}/${action.name}`, {});
  return `Job ${action.id} is ${action.name === "cancel" ? "cancelled" : "retried"}.`;
}
