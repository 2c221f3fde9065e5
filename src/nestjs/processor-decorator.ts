import { CurfewError, refuse, refuseUnknownKeys } from "../core/errors.ts";
import { type AnyDefinition, assertDefinition, type JobDefinition } from "../core/job/job-definition.ts";
import { keysOf } from "../core/option-keys.ts";
import type { Handler } from "../engine/attempt/processor.ts";

export interface ProcessorOptions {
  /** How many attempts of the definition's queue run at once in this process. Default: what `work.queues` says, else 10. */
  readonly concurrency?: number;
}

/** A class whose instance runs the jobs of one definition. */
interface HandlerClass<Payload, Result> {
  handle: Handler<Payload, Result>;
}

type Constructor<Instance> = abstract new (...parameters: never[]) => Instance;

/** Standard decorators come with a context, legacy ones (`experimentalDecorators`) with a key and a descriptor. */
interface ProcessorDecorator<Payload, Result> {
  (method: Handler<Payload, Result>, context: ClassMethodDecoratorContext): void;
  (type: Constructor<HandlerClass<Payload, Result>>, context: ClassDecoratorContext): void;
  (target: object, key: string | symbol, descriptor: { readonly value?: Handler<Payload, Result> }): void;
  (type: Constructor<HandlerClass<Payload, Result>>): void;
}

/** What a decorator noted: this method runs the jobs of this definition. */
export interface Mark {
  readonly definition: AnyDefinition;
  readonly method: string | symbol;
  readonly options: ProcessorOptions;
}

const KEYS = keysOf<ProcessorOptions>({ concurrency: true });

/** By prototype, by class, or by instance: a standard decorator of a method sees neither prototype nor class. */
const marks = new WeakMap<object, Mark[]>();

function note(target: object, mark: Mark): void {
  const noted = marks.get(target);
  if (noted) noted.push(mark);
  else marks.set(target, [mark]);
}

/**
 * Lets a method of a provider, or the method `handle` of a provider class, run the jobs of this definition. Works as a
 * legacy decorator, which Nest uses itself, and as a standard one.
 */
export function Processor<Payload, Result>(
  definition: JobDefinition<unknown, Payload, Result>,
  options: ProcessorOptions = {},
): ProcessorDecorator<Payload, NoInfer<Result>> {
  assertDefinition(definition, "Processor");
  refuseUnknownKeys(options, "Processor", KEYS);
  const mark = (method: string | symbol): Mark => ({ definition, method, options });
  const decorate = (target: unknown, second?: unknown): void => {
    if (isContext(second)) decorateStandard(target as object, second, mark);
    else if (typeof target === "function" && second === undefined) note(target, mark("handle"));
    else if (typeof target === "object" && target !== null && isKey(second)) note(target, mark(second));
    else
      throw refuse("invalid_option", "Processor", second, "put it on a class with handle(), or on a method");
  };
  return decorate as ProcessorDecorator<Payload, NoInfer<Result>>;
}

type Context = ClassMethodDecoratorContext | ClassDecoratorContext;

function decorateStandard(value: object, context: Context, mark: (method: string | symbol) => Mark): void {
  if (context.kind === "class") note(value, mark("handle"));
  else {
    const { name } = context;
    context.addInitializer(function (this: unknown) {
      note(this as object, mark(name));
    });
  }
}

function isContext(value: unknown): value is Context {
  return (
    typeof value === "object" &&
    value !== null &&
    "kind" in value &&
    (value.kind === "class" || value.kind === "method")
  );
}

function isKey(value: unknown): value is string | symbol {
  return typeof value === "string" || typeof value === "symbol";
}

/** All marks of an instance, of its class and of the classes that it extends. */
export function marksOf(instance: object): Mark[] {
  const found = [...(marks.get(instance) ?? [])];
  for (
    let at = Object.getPrototypeOf(instance);
    at && at !== Object.prototype;
    at = Object.getPrototypeOf(at)
  )
    found.push(...marksOfPrototype(at));
  return found;
}

/** The marks of a class without its parents, for providers that have no instance of their own. */
export function marksOfPrototype(prototype: object): Mark[] {
  const own = Object.getOwnPropertyDescriptor(prototype, "constructor")?.value;
  return [...(marks.get(prototype) ?? []), ...(typeof own === "function" ? (marks.get(own) ?? []) : [])];
}

/** The handler of a mark, bound to its instance. */
export function handlerOf(instance: object, { definition, method }: Mark): Handler<unknown, unknown> {
  const handler: unknown = Reflect.get(instance, method);
  if (typeof handler !== "function")
    throw new CurfewError(
      "invalid_option",
      `Processor(${definition.type}): ${instance.constructor.name} has no method ${String(method)}; ` +
        "write one, or put the decorator on the method that runs the job",
      { field: "Processor" },
    );
  return (context) => handler.call(instance, context);
}
