import type { NewEvent } from "../../core/event/new-event.ts";
import type { Json } from "../../core/schema.ts";
import type { Packed } from "./codec.ts";

/** The objects that the events of one call share. Each is sent once, and events name it by its number. */
export class EventHeads {
  readonly #numbers = new Map<Json, number>();
  readonly #texts: string[] = [];

  /** The event as functions take it: the number of its object, and its own fields. */
  item({ event, of }: NewEvent): [head: Packed, of: Packed] {
    let number = this.#numbers.get(event);
    if (number === undefined) {
      number = this.#texts.length;
      this.#numbers.set(event, number);
      this.#texts.push(JSON.stringify(event));
    }
    return [number, of === undefined ? null : JSON.stringify(of)];
  }

  /** The objects as JSON texts, between commas. */
  get text(): string {
    return this.#texts.join(",");
  }
}
