import { type Attack, attacks } from "./requests.ts";
import { Target } from "./target.ts";

export interface Result {
  readonly name: string;
  readonly status: number;
  /** Bytes of the request. */
  readonly size: number;
  /** The longest block of the event loop, in milliseconds of CPU. */
  readonly longest: number;
}

/** Sends each request several times and keeps the shortest measurement: a garbage collection may fall into any of them. */
export async function sendEach(
  store: string,
  tries: number,
  requests: readonly Attack[] = attacks(),
): Promise<Result[]> {
  await using target = await Target.start(store);
  const results: Result[] = [];
  for (const attack of [WARM_UP, ...requests]) {
    let longest = Number.POSITIVE_INFINITY;
    let status = 0;
    for (let count = 0; count < tries; count++) {
      status = (await target.send(attack.method, attack.path, attack.body)).status;
      longest = Math.min(longest, (await target.measure()).longest);
    }
    results.push({ name: attack.name, status, size: Buffer.byteLength(attack.body ?? ""), longest });
  }
  return results.slice(1);
}

const WARM_UP: Attack = {
  name: "a plain job",
  method: "POST",
  path: "/jobs",
  body: '{"type":"a.b","args":[]}',
};
