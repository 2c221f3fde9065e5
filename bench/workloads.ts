import { delayed, pickup } from "./latency.ts";
import { recovery } from "./recovery.ts";
import { beside, bulk, drain10, drain100, single } from "./throughput.ts";
import type { Workload } from "./workload.ts";

export const WORKLOADS: readonly Workload[] = [
  bulk,
  single,
  drain10,
  drain100,
  pickup,
  delayed,
  beside,
  recovery,
];
