import { POLICY_FIELDS, type Policy, type SettingSource } from "../../core/job/job.ts";

/**
 * The most common policy. Every job that has run stores its policy; only the difference to this one is written, which
 * halves the size of a finished row. It is part of the format on disk: never change a value, even if the built-in defaults
 * change. Give a new field the value that old rows had.
 */
const USUAL = {
  attempt: 1_800_000,
  grace: 30_000,
  heartbeat: 60_000,
  mode: "fail",
  retry: {
    attempts: 3,
    backoff: { kind: "exponential", first: 1_000, factor: 2, max: 300_000, jitter: true },
    except: [],
    retryFit: "full",
    onStall: "retry",
    onExhausted: "discard",
  },
  retention: { completed: 86_400_000, discarded: 1_209_600_000, cancelled: 1_209_600_000 },
  beats: "worker",
  hears: true,
} satisfies Omit<Policy, "sources">;

/** One letter for each of `POLICY_FIELDS`. They are part of the format on disk: never change one. */
export const SOURCE_LETTERS: Readonly<Record<SettingSource, string>> = {
  enqueue: "e",
  definition: "d",
  queue: "q",
  engine: "n",
  "built-in": "b",
};
const SOURCES = new Map(
  Object.entries(SOURCE_LETTERS).map(([source, letter]) => [letter, source as SettingSource]),
);

/** The source of a letter; undefined if it is none. */
export function sourceOf(letter: string | undefined): SettingSource | undefined {
  return letter === undefined ? undefined : SOURCES.get(letter);
}

type Fields = Readonly<Record<string, unknown>>;

/** Attempts of one definition share a policy, and encoding it costs more than most of a settle. */
const texts = new WeakMap<Policy, string>();

export function policyText(policy: Policy): string {
  let text = texts.get(policy);
  if (text === undefined) {
    const { sources, retry, ...fields } = policy;
    const letters = POLICY_FIELDS.map((field) => SOURCE_LETTERS[sources[field]]).join("");
    text = JSON.stringify({ ...unusual(fields, USUAL), retry: unusual({ ...retry }, USUAL.retry), letters });
    texts.set(policy, text);
  }
  return text;
}

function unusual(fields: Fields, usual: Fields): Fields {
  return Object.fromEntries(
    Object.entries(fields).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(usual[name])),
  );
}

export function parsePolicy(text: string): Policy {
  const { letters, retry, ...fields } = JSON.parse(text) as { letters?: string; retry: object };
  // Written before policies were shortened.
  if (letters === undefined) return JSON.parse(text) as Policy;
  const sources = Object.fromEntries(
    POLICY_FIELDS.map((field, index) => [field, sourceOf(letters.charAt(index)) ?? "built-in"]),
  ) as Policy["sources"];
  return { ...USUAL, ...fields, retry: { ...USUAL.retry, ...retry }, sources: sources } as Policy;
}
