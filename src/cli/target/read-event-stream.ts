/** One server-sent event. */
export interface StreamEvent {
  readonly id: string | undefined;
  readonly name: string;
  readonly data: string;
}

const MOST_CHARACTERS = 16_000_000;

/** Reads server-sent events until the stream ends or the signal aborts. */
export async function* readEventStream(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<StreamEvent, void, undefined> {
  const reader = body.getReader();
  const stop = () => void reader.cancel().catch(() => {});
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      const frames = text.split(/\r?\n\r?\n/);
      text = frames.pop() as string;
      if (text.length > MOST_CHARACTERS)
        throw new Error(`the event stream sent an event of more than ${MOST_CHARACTERS} characters`);
      for (const frame of frames) {
        const event = parseFrame(frame);
        if (event) yield event;
      }
    }
  } catch (error) {
    // After an abort this error is expected.
    if (!signal.aborted) throw error;
  } finally {
    signal.removeEventListener("abort", stop);
    await reader.cancel().catch(() => {});
  }
}

function parseFrame(frame: string): StreamEvent | undefined {
  let id: string | undefined;
  let name = "message";
  const data: string[] = [];
  for (const line of frame.split(/\r?\n/)) {
    const [, field, value = ""] = /^(\w+):? ?(.*)$/s.exec(line) ?? [];
    if (field === "id") id = value;
    else if (field === "event") name = value;
    else if (field === "data") data.push(value);
  }
  return data.length === 0 ? undefined : { id, name, data: data.join("\n") };
}
