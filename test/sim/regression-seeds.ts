/** Seeds that once broke a rule, with what each of them showed. */
export const REGRESSION_SEEDS: readonly (readonly [seed: number, showed: string])[] = [
  [7_009_570, "a bulk retry ran a job twice that failed again after a lost reply"],
  [9_108_860, "a bulk retry ran two jobs of one batch twice after a lost reply"],
  [9_110_809, "a bulk retry ran a job twice that timed out again after a lost reply"],
  [9_111_622, "a bulk retry ran a job twice after a lost reply and a dropped commit"],
  [9_113_563, "a bulk retry ran a job twice that used up its attempts after a lost reply"],
  [
    7_015_620,
    "a row that others wrote took back the time of an attempt entered after its start was committed",
  ],
  [7_017_672, "an attempt lost the time that a slow reading of the clock took"],
  [9_111_996, "a clock reading overtaken by a later one put the engine's clock back by a second"],
  [7_016_717, "the checker took the lease of a claim for the lease of a committed start"],
  [7_000_247, "a bulk action left its timer behind when the engine closed"],
  [9_401_288, "a start that waited for a moment was entered after a gap without asking for its claim"],
  [9_401_125, "a rate knew of a start too early, because its commit took long"],
  [7_000_979, "total with unbounded grace ends nothing; the dead job keeps the only slot of its queue"],
  [7_017_089, "jobs wait for a limit whose slots are kept by jobs in a queue without a free slot"],
  [7_018_208, "a job that kills its process, and that nothing ends, keeps the only slot of its queue"],
  [20_001_879, "a slow reading of the clock after a jump of the wall clock made durations 660 ms longer"],
  [
    30_011_967,
    "a start whose reply was lost was marked again before its row had been read, and announced twice",
  ],
  [30_004_815, "the checker forgot the doubt of the reading before last"],
  [20_013_496, "the checker took the doubt of the last clock reading for that of the one before"],
  [20_014_975, "the checker took what an operator heard for what the worker of the same process knows"],
  [70_200_987, "a verdict overtook a start mark that was repeated alone, and recorded the start again"],
  [510_004_589, "the checker did not know that an answer which comes after a gap may be used at once"],
  [510_008_593, "the checker did not know that an answer which comes after a gap may be used at once"],
  [20_017_426, "the checker forgot that total may cut the full time of an attempt"],
  [
    1_110_005_654,
    "a job waited for its limit for ever: the one that the sweep should wake was a duplicate, and its process died",
  ],
  [1_476_128_078, "the checker waited for the built-in limit of a job whose process had died"],
];

/** The same for worlds in which some processes are far away from the store. */
export const DISTANT_REGRESSION_SEEDS: readonly (readonly [seed: number, showed: string])[] = [
  [120, "a job under a rate was never entered by a worker whose commits took long"],
  [151, "a job that waited for a moment in a closing worker stayed claimed"],
  [155, "the claim of a job with a short heartbeat was over before it reached its worker"],
  [15, "the checker forgot a committed start when the job was cancelled before its entry"],
  [513, "a start that was committed first was entered after wait had ended"],
  [686, "a job expired while its handler ran, because its start was on its way to the store"],
  [
    930_000_422,
    "a job given back after the reply of its start mark was lost started again without waiting for its rate",
  ],
  [
    960_003_597,
    "five jobs whose starts waited for each other's commits were claimed and given back for ever",
  ],
  [1_200_002_828, "jobs whose starts waited for each other's commits were claimed and given back for ever"],
  [1_200_000_534, "jobs whose starts waited for each other's commits were claimed and given back for ever"],
  [1_200_002_232, "a job whose verdict was overtaken expired although its handler had been entered"],
  [1_200_001_241, "an attempt that total had cut was counted anew from its start, and timed out 22 ms early"],
  [1_400_002_195, "a sweep far away judged by a new time the silence of a row that it had read 1.4 s before"],
  [920_000_225, "a handler that took all of its grace left no time for its release"],
  [970_002_765, "a job whose claim was being confirmed stayed claimed when its worker closed"],
  [1_100_008_342, "a job whose verdict was overtaken twice expired although its handler had been entered"],
  [2_100_013_171, "jobs whose claim was answered while a closing process stood still stayed claimed"],
];

/** The same where each process may have two commits under way. */
export const COMMITS_REGRESSION_SEEDS: readonly (readonly [seed: number, showed: string])[] = [
  [
    2_300_000_678,
    "the checker took a shorter heartbeat that the holder had not heard of for the end of its lease",
  ],
];

/** The same for worlds with fair queues. */
export const FAIR_REGRESSION_SEEDS: readonly (readonly [seed: number, showed: string])[] = [
  [1_594_794_613, "a job whose changed row came after a gap was entered without asking for its claim again"],
  [
    910_000_619,
    "the checker gave a world 20 minutes, in which 222 jobs shared one slot and two of them killed their process",
  ],
];

/** The same for worlds with fair queues on a store with four homes. */
export const FAIR_HOME_REGRESSION_SEEDS: readonly (readonly [seed: number, showed: string])[] = [
  [
    910_000_580,
    "the checker gave a world 20 minutes, in which 225 jobs waited for few slots and some killed their process",
  ],
];

/** The same for the simulator of workflows. */
export const WORKFLOW_REGRESSION_SEEDS: readonly (readonly [seed: number, showed: string])[] = [
  [101, "a defect that was found before this list existed"],
  [154, "a defect that was found before this list existed"],
  [5_000_037, "a process that had stood still cancelled a callback after the end of its workflow"],
];

/** The same for the simulator of sagas. */
export const SAGA_REGRESSION_SEEDS: readonly (readonly [seed: number, showed: string])[] = [
  [
    95_000_174,
    "the checker gave a saga 40 minutes, and four messages and an undo failed all their tries in turn",
  ],
];

/** The same for a store with four homes. */
export const HOME_REGRESSION_SEEDS: readonly (readonly [seed: number, showed: string])[] = [
  [410_001_623, "the checker took a row that a home still had after a failover for a new one"],
  [430_001_769, "two sleeps that overlapped put the monotonic clock of a machine back"],
  [
    1_480_001_599,
    "the checker did not know that a beat is heard when the slowest home has answered, which may be after a gap",
  ],
  [2_100_001_637, "the checker read the events once, and one read brings at most 20,000 of a home together"],
];

/** The same for the simulator of the outbox. */
export const OUTBOX_REGRESSION_SEEDS: readonly (readonly [seed: number, showed: string])[] = [
  [420_000_218, "the checker took a mark that a home still had after a failover for a new one"],
];
