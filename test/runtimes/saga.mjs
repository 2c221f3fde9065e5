/** A saga asks for two timeouts and takes one back: only the other one is handled. */
import { defineSaga, unchecked } from "curfew";
import { check, openStore, until } from "./store.mjs";

const handled = [];
const orders = defineSaga({
  type: "order",
  state: unchecked(),
  messages: { placed: unchecked(), paid: unchecked() },
  timeouts: { late: unchecked(), thanks: unchecked() },
  correlate: { placed: ({ id }) => id, paid: ({ id }) => id },
  startedBy: "placed",
  start({ id }, saga) {
    saga.request("late", { after: "1h" }, null, { key: "late" });
    return { id };
  },
  on: {
    paid(state, _message, saga) {
      saga.reply(saga.revoke("late"));
      saga.request("thanks", { after: "50ms" }, null);
      return state;
    },
  },
  onTimeout: {
    late(state) {
      handled.push("late");
      return state;
    },
    thanks(state, _payload, saga) {
      handled.push("thanks");
      return saga.complete(state);
    },
  },
});
const engine = await openStore();
engine.host([orders]);
await engine.send(orders, "placed", { id: "o-1" });
const paid = await engine.send(orders, "paid", { id: "o-1" });
check("revoke", await paid.reply({ within: "30s" }), "revoked");
await until(() => handled.length > 0);
check("handled", handled, ["thanks"]);
await engine.close();
console.log("ok");
