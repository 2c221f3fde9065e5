/** What all examples of this folder share: a job, a saga, and the form of an example. */
import { z } from "zod";
import { defineJob, defineSaga, type Engine, type Store } from "../curfew.ts";

export const confirmOrder = defineJob({ type: "order.confirm", payload: z.object({ order: z.string() }) });

/** A saga that follows an order. */
export const orderSaga = defineSaga({
  type: "order",
  state: z.object({ order: z.string() }),
  messages: { placed: z.object({ order: z.string() }) },
  correlate: { placed: ({ order }) => order },
  startedBy: "placed",
  start: ({ order }) => ({ order }),
  on: {},
});

export interface Shop {
  /**
   * Writes an order, enqueues a job, sends a message to the saga and requests a timeout, all in one transaction. If the
   * order is sold out, it throws, and nothing of it exists.
   */
  placeOrder(engine: Engine, order: string, isSoldOut: boolean): Promise<void>;
  close(): Promise<void>;
}

/** An example: it opens its database at an address, and finds a table `orders` in it. */
export type OpenShop = (address: string) => Promise<Shop>;

/** An example on SQLite, where the store must use the same copy of SQLite as the shop. */
export type OpenShopAndStore = (file: string) => Promise<Shop & { readonly store: Store }>;

export class SoldOut extends Error {}
