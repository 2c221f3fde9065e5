import { z } from "zod";
import type { By } from "../../core/audit/audit-entry.ts";
import { CurfewError } from "../../core/errors.ts";
import { UUID } from "../../core/ids.ts";
import { INTERNAL, isInternalQueue } from "../../core/job/internal-queue.ts";
import { type AnyDefinition, defineJob } from "../../core/job/job-definition.ts";
import type { PortableDefinition } from "../../core/job/transfer/portable.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Service } from "../../engine/remote/service.ts";
import type { Awaited } from "../../ojs/call-names.ts";
import { bounded } from "../http/bounded.ts";

/** What a call gets besides its arguments. */
export interface CallDeps {
  readonly engine: Engine;
  readonly service: Service;
  /** The caller, for the audit. */
  readonly by: By;
  readonly isGone: () => boolean;
}

/** A method of the engine as it is called over HTTP. */
export interface Call {
  readonly summary: string;
  readonly args: z.ZodType;
  readonly run: (host: CallDeps, ...args: never[]) => unknown;
}

/** A result that is JSON text already. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export function call<Args extends z.ZodTuple>(
  summary: string,
  args: Args,
  run: (host: CallDeps, ...args: z.output<Args>) => unknown,
): Call {
  return { summary, args, run: run as Call["run"] };
}

/** Options that are functions, handles or the server's own business. They have no meaning in JSON. */
const LOCAL = ["tx", "signal", "onProgress", "by", "parent"] as const;

/** An object whose fields the engine checks. */
export function options<Options>(): z.ZodType<Options> {
  const object = z.looseObject({}).superRefine((said, context) => {
    for (const name of LOCAL)
      if (Object.hasOwn(said, name))
        context.addIssue({
          code: "custom",
          path: [name],
          message: "leave it out: it cannot be sent over HTTP",
        });
  });
  return object as unknown as z.ZodType<Options>;
}

/** The id of a job. Not every store can look for other texts. */
export const id = z.string().regex(UUID, { error: "use the id of a job, a lower-case UUID" });
export const text = z.string().min(1).max(1_000);
const RESERVED = `use another name: those that begin with "${INTERNAL}" belong to the server`;
/** A queue or a limit key of clients. The engine's own are not theirs to see or to change. */
export const ownName = text.refine((name) => !isInternalQueue(name), { error: RESERVED });

/** A query of jobs. It cannot name a queue of the engine, and without a name the engine leaves its own jobs out. */
export function jobQuery<Query>(): z.ZodType<Query> {
  return options<{ readonly queue?: unknown }>().superRefine(({ queue }, context) => {
    if (typeof queue === "string" && isInternalQueue(queue))
      context.addIssue({ code: "custom", path: ["queue"], message: RESERVED });
  }) as unknown as z.ZodType<Query>;
}
export const count = z.int().min(0).max(1_000_000);
/** Milliseconds that a call may wait. A longer wait is several calls. */
export const wait = z.int().min(1).max(2_000);
/** Any JSON. */
export const json = z.unknown() as unknown as z.ZodType<never>;

/** A definition without its schemas; the engine checks it like any other. */
export const definition = options<PortableDefinition>();

export function definitionOf(portable: PortableDefinition): AnyDefinition {
  return defineJob(portable) as AnyDefinition;
}

/** Ends without a value when the engine's own wait is over. */
export async function awaited<Value>(ask: () => Promise<Value>): Promise<Awaited<Value>> {
  try {
    return { isDone: true, value: await ask() };
  } catch (error) {
    if (error instanceof CurfewError && error.code === "result_timeout") return { isDone: false };
    throw error;
  }
}

/** How long an action on many jobs works before it replies. The client's next call continues. */
const LONGEST = 5_000;

export const bounds = ({ service, isGone }: CallDeps) => bounded(service.system, isGone, LONGEST);
