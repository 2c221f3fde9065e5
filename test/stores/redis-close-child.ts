/** Closes the client of a cluster in the middle of a refresh of its slots. The process then has to end by itself. */
import { parseAddress } from "../../src/stores/redis/address.ts";
import { createDialer } from "../../src/stores/redis/dial.ts";
import { closeClient, type RedisLike } from "../../src/stores/redis/redis-package.ts";

const url = process.argv[2] as string;
const { client } = await createDialer(parseAddress(url, url));
const refreshing = client as RedisLike & { refreshSlotsCache(done?: () => void): void };
const refresh = refreshing.refreshSlotsCache.bind(client);
// The timer of the client calls it about once a second.
refreshing.refreshSlotsCache = (done?: () => void) => {
  refreshing.refreshSlotsCache = refresh;
  refresh(done);
  closeClient(client);
  console.log("closed");
};
