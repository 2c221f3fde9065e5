/** Why something could not be carried over. The text continues "N jobs: …". */
export const REFUSALS = {
  name: "the name does not fit curfew's rules; pass --rename <old>=<new>",
  too_large: "the payload is larger than curfew accepts; process it in the old system",
  not_json: "the payload is not JSON; process it in the old system",
  flow: "it belongs to a flow or has dependencies; let the flow end in the old system",
  duplicate: "a live job in curfew holds its unique key; end that job, or remove this one",
  missing: "the old system lists the job but has no data for it",
  invalid: "curfew does not accept it as it is",
  copied:
    "it failed, and the old system holds a copy of it in a dead letter queue; the copy was carried over",
  taken: "a worker of the old system took it during the import, so it may run in both",
  scheduler: "it is the next run of a scheduler that could not be carried over",
  cron_rule: "the schedule is a recurrence rule; write it as a cron expression by hand",
  cron_interval: "no cron expression has this interval; write the cron by hand",
  cron_end: "the schedule has a start, an end or a most number of runs; write the cron by hand",
  cron_invalid: "curfew does not accept the cron as it is",
  cron_known: "curfew has another cron with this name; delete one of the two",
} as const;

/** What was carried over with a difference. */
export const CHANGES = {
  renamed: "the name was changed to fit curfew's rules",
  priority: "the priority was cut to the range from -100 to 100",
  backoff: "the backoff is code of the old system; the definition's backoff applies",
  throttle: "the time window of its unique key was not carried over",
  group: "the group was not carried over; use a limit with a key",
  order: "last in, first out was not carried over; it starts in the order of its due time",
  wider_key: "its unique key holds while it waits and while it runs; in the old system only while it waits",
  interval: "an interval became a cron expression; its runs are at round times",
} as const;

export type Refusal = keyof typeof REFUSALS;
export type Change = keyof typeof CHANGES;

/** One job or cron to which a reason applies. */
export interface Note<Reason> {
  readonly reason: Reason;
  /** What exactly, such as `"Send Mail" -> "send-mail"`. */
  readonly detail: string;
}

interface Example {
  readonly source: string;
  readonly detail: string;
}

/** A reason, how many jobs or crons it applies to, and the first few of them. */
export interface Tally {
  readonly reason: string;
  readonly says: string;
  readonly count: number;
  readonly examples: readonly Example[];
}

const MOST_EXAMPLES = 5;
/** Texts of the old system may have any length. */
const LONGEST_TEXT = 200;

export class Tallies<Reason extends string> {
  readonly #texts: Readonly<Record<Reason, string>>;
  #counts = new Map<Reason, { count: number; examples: Example[] }>();

  constructor(texts: Readonly<Record<Reason, string>>) {
    this.#texts = texts;
  }

  add(source: string, { reason, detail }: Note<Reason>): void {
    const tally = this.#counts.get(reason) ?? { count: 0, examples: [] };
    tally.count += 1;
    if (tally.examples.length < MOST_EXAMPLES)
      tally.examples.push({
        source: source.slice(0, LONGEST_TEXT),
        detail: detail.slice(0, LONGEST_TEXT),
      });
    this.#counts.set(reason, tally);
  }

  clear(): void {
    this.#counts.clear();
  }

  get total(): number {
    return [...this.#counts.values()].reduce((sum, { count }) => sum + count, 0);
  }

  list(): Tally[] {
    return [...this.#counts].map(([reason, { count, examples }]) => ({
      reason,
      says: this.#texts[reason],
      count,
      examples,
    }));
  }
}
