import { Inject } from "@nestjs/common";
import { type AnyDefinition, assertDefinition } from "../core/job/job-definition.ts";

/** The injection token of the engine. */
export const ENGINE = Symbol("curfew engine");

/** The injection token of the module's options. */
export const OPTIONS = Symbol("curfew options");

const tokens = new WeakMap<AnyDefinition, symbol>();

/** The injection token of a definition's queue, for `inject: [queueToken(mail)]`. */
export function queueToken(definition: AnyDefinition): symbol {
  assertDefinition(definition, "definition");
  let token = tokens.get(definition);
  if (!token) {
    // Nest shows this text if it finds no provider.
    token = Symbol(`queue of ${definition.type}: add it to CurfewModule.forFeature([...])`);
    tokens.set(definition, token);
  }
  return token;
}

/** Injects the `JobQueue` of a definition. */
export const InjectQueue = (definition: AnyDefinition) => Inject(queueToken(definition));

/** Injects the engine. */
export const InjectEngine = () => Inject(ENGINE);
