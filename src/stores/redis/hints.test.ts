import { EventEmitter } from "node:events";
import { describe, expect, it, vi } from "vitest";
import type { Hint } from "../../ports/store.ts";
import { HintChannels } from "./hints.ts";
import type { RedisLike } from "./redis-package.ts";

/** A client that subscribes as it is told. `lose` breaks its connection, which comes back at once. */
class FakeClient extends EventEmitter {
  status = "ready";
  readonly subscribe = vi.fn(async () => 1);
  readonly disconnect = vi.fn((reconnect?: boolean) => {
    if (reconnect) this.lose();
  });

  lose(): void {
    this.emit("close");
    this.emit("ready");
  }
}

async function listening() {
  const client = new FakeClient();
  const channels = new HintChannels(async () => client as unknown as RedisLike, false);
  const hints: Hint[] = [];
  await channels.listen("hints", (hint) => hints.push(hint));
  return { client, channels, hints };
}

describe("a connection of hints that comes back", () => {
  it("subscribes again, and then tells what was missed", async () => {
    const { client, hints } = await listening();
    client.lose();
    await expect.poll(() => hints).toEqual([{ missed: true }]);
    expect(client.subscribe).toHaveBeenCalledTimes(2);
  });

  it("is replaced if the server does not answer the subscription", async () => {
    const { client, hints } = await listening();
    client.subscribe.mockRejectedValueOnce(new Error("Command timed out"));
    client.lose();
    await expect.poll(() => hints).toEqual([{ missed: true }]);
    expect(client.disconnect).toHaveBeenCalledExactlyOnceWith(true);
    expect(client.subscribe).toHaveBeenCalledTimes(3);
  });

  it("is replaced when the connection of commands was, unless it connects already", async () => {
    const { client, channels, hints } = await listening();
    client.status = "reconnecting";
    await channels.renew();
    expect(client.disconnect).not.toHaveBeenCalled();
    client.status = "ready";
    await channels.renew();
    expect(client.disconnect).toHaveBeenCalledExactlyOnceWith(true);
    await expect.poll(() => hints).toEqual([{ missed: true }]);
    await channels.close();
    await channels.renew();
    expect(client.disconnect).not.toHaveBeenLastCalledWith(true);
  });

  it("is not replaced once the store is closed", async () => {
    const { client, channels } = await listening();
    const failed = Promise.withResolvers<number>();
    client.subscribe.mockReturnValueOnce(failed.promise);
    client.lose();
    await channels.close();
    failed.reject(new Error("Connection is closed."));
    await expect.poll(() => client.disconnect).toHaveBeenCalled();
    expect(client.disconnect).not.toHaveBeenCalledWith(true);
  });
});
