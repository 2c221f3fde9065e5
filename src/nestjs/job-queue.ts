import type { EnqueueOptions } from "../core/job/enqueue/envelope.ts";
import type { AnyDefinition, JobDefinition, PayloadArgs } from "../core/job/job-definition.ts";
import type { Engine } from "../engine/engine.ts";
import type { JobHandle } from "../engine/operations/job-handle.ts";

type Of<Definition> =
  Definition extends JobDefinition<infer Input, infer _, infer Result>
    ? { readonly input: Input; readonly result: Result }
    : never;
type InputOf<Definition> = Of<Definition>["input"];
type ResultOf<Definition> = Of<Definition>["result"];

/** Enqueues the jobs of one definition: `@InjectQueue(mail) readonly mail: JobQueue<typeof mail>`. */
export class JobQueue<Definition extends AnyDefinition> {
  readonly definition: Definition;
  readonly #engine: Engine;

  constructor(engine: Engine, definition: Definition) {
    this.#engine = engine;
    this.definition = definition;
  }

  /** Adds one job; resolves when it is durable. */
  enqueue(
    ...[payload, options]: PayloadArgs<InputOf<Definition>, EnqueueOptions>
  ): Promise<JobHandle<ResultOf<Definition>>> {
    return this.#engine.enqueue(this.definition as AnyDefinition, payload, options) as Promise<
      JobHandle<ResultOf<Definition>>
    >;
  }

  /** Adds many jobs: see `engine.enqueueMany`. */
  enqueueMany(
    payloads: readonly InputOf<Definition>[],
    options?: Omit<EnqueueOptions, "id">,
  ): Promise<JobHandle<ResultOf<Definition>>[]> {
    return this.#engine.enqueueMany(this.definition as AnyDefinition, payloads, options) as Promise<
      JobHandle<ResultOf<Definition>>[]
    >;
  }

  /** A handle on a job of this definition. */
  job(id: string): JobHandle<ResultOf<Definition>> {
    return this.#engine.job(id) as JobHandle<ResultOf<Definition>>;
  }
}
