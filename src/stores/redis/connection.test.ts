import { describe, expect, it } from "vitest";
import { RedisConnection } from "./connection.ts";
import type { RedisLike } from "./redis-package.ts";

/** A server whose replicas answer one WAIT after the other so. The call itself answers "done". */
function waitingFor(reached: readonly number[]): RedisConnection {
  const pipeline = () => {
    const answers: [null, unknown][] = [];
    const left = [...reached];
    return {
      callBuffer: () => answers.push([null, Buffer.from("done")]),
      call: () => answers.push([null, left.shift() ?? 0]),
      exec: async () => answers,
    };
  };
  const acknowledgement = { replicas: 1, within: 1_000 };
  const options = { isCluster: false, acknowledgement, rest: async () => {} };
  return new RedisConnection({ client: { pipeline } as unknown as RedisLike }, options);
}

const write = (connection: RedisConnection) =>
  connection.call("commit", ["{home}", "{home}:-"], Buffer.from(""), true);

describe("an acknowledgement by replicas", () => {
  it("asks them again: one that connects during the first question has the write", async () => {
    expect((await write(waitingFor([0, 1, 1]))).toString()).toBe("done");
  });

  it("is refused if none has the write in the end", async () => {
    await expect(write(waitingFor([0, 0, 0]))).rejects.toThrow(
      "0 of 1 replicas had the write within 1000 ms",
    );
  });
});
