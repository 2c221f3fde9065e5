import { refuse } from "../errors.ts";
import { toJsonText, validate } from "../schema.ts";
import type { SagaPlan } from "./saga.ts";

/** A checked message and the saga it is for. */
export interface PreparedMessage {
  /** The correlation value as text. */
  readonly to: string;
  /** JSON text of what the sender gave. The receiver parses it again. */
  readonly payload: string;
}

/** Checks a message where it is sent, and finds its saga. Synchronous if the schema is. */
export function prepareMessage(
  plan: SagaPlan,
  name: string,
  payload: unknown,
  limit?: number,
): PreparedMessage | Promise<PreparedMessage> {
  const schema = checkMessageName(plan, name);
  const prepared = (parsed: unknown): PreparedMessage => ({
    to: correlationOf(plan, name, parsed),
    payload: toJsonText(payload, "payload", limit),
  });
  const parsed = validate(schema, payload, "payload", "invalid_payload");
  return parsed instanceof Promise ? parsed.then(prepared) : prepared(parsed);
}

export function checkMessageName(plan: SagaPlan, name: string) {
  const schema = Object.hasOwn(plan.messages, name) ? plan.messages[name] : undefined;
  if (!schema) throw refuse("unknown_message", "name", name, listed(plan.messages, plan.type));
  return schema;
}

export function checkTimeoutName(plan: SagaPlan, name: string) {
  const schema = Object.hasOwn(plan.timeouts, name) ? plan.timeouts[name] : undefined;
  if (!schema) throw refuse("unknown_timeout", "name", name, listed(plan.timeouts, plan.type));
  return schema;
}

export function checkUndoName(plan: SagaPlan, name: string) {
  const schema = Object.hasOwn(plan.undos, name) ? plan.undos[name] : undefined;
  if (!schema) throw refuse("unknown_undo", "name", name, listed(plan.undos, plan.type));
  return schema;
}

function listed(names: object, type: string): string {
  const known = Object.keys(names);
  return known.length > 0 ? `${type} declares ${known.join(", ")}` : `${type} declares none`;
}

export function correlationOf(plan: SagaPlan, name: string, message: unknown): string {
  return identityText(plan.correlate[name]?.(message as never), `correlate.${name}`);
}

/** A number and a text that look alike name the same saga: both become the same key of a store. */
export function identityText(value: unknown, field: string): string {
  const text = typeof value === "bigint" || Number.isSafeInteger(value) ? String(value) : value;
  const isText = typeof text === "string" && text !== "" && text.length <= 255;
  if (isText && text.isWellFormed() && !text.includes("\0")) return text;
  const fix =
    "return a whole number or a text of 1 to 255 characters, the same for every message of one saga";
  throw refuse("invalid_correlation", field, value, fix);
}

/**
 * The fields of a message that its correlation reads and whose value is the saga's id. If the state has such a field,
 * no handler may change it (SEMANTICS 7.6).
 */
export function correlationFields(plan: SagaPlan, name: string, message: unknown, id: string): string[] {
  if (typeof message !== "object" || message === null) return [];
  const read = new Set<string>();
  const watched = new Proxy(message, {
    get(target, property) {
      if (typeof property === "string") read.add(property);
      return Reflect.get(target, property);
    },
  });
  try {
    plan.correlate[name]?.(watched as never);
  } catch {
    // An object with private fields cannot be proxied. `identify` covers this case.
    return [];
  }
  return [...read].filter((field) => String((message as Record<string, unknown>)[field]) === id);
}
