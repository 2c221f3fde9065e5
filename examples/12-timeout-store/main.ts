/**
 * The leased timeout store on its own, without jobs or sagas: reminders that are claimed, sent and removed, a lease that
 * is lost, a reminder that is taken back, and a loop over what is due.
 */
import { ConcurrencyError, openTimeouts } from "curfew/timeouts";

// "sqlite:reminders.db" or "postgres://…" in earnest: then they survive the process.
await using timeouts = await openTimeouts({ store: "memory:", lease: "2s" });

// What is due is claimed under a lease, handled, and removed by its holder.
await timeouts.insert({ id: "tea", destination: "kitchen", dueAt: "0s", payload: { minutes: 4 } });
const [tea] = await timeouts.claimDue();
console.log(`claimed ${tea?.id} with`, tea?.payload);

// Nobody else gets it meanwhile; once the lease is over, the first holder has lost it.
console.log("a second claim gives", await timeouts.claimDue());
await new Promise((resolve) => setTimeout(resolve, 2_100));
const [again] = await timeouts.claimDue();
console.log(`claimed ${again?.id} again after its lease`);
try {
  await timeouts.remove("tea", tea?.owner);
} catch (error) {
  if (error instanceof ConcurrencyError) console.log(`the first holder is too late: ${error.reason}`);
}
await timeouts.remove("tea", again?.owner);

// A key names the one that waits: inserted again it is moved, and cancelled it is never handled.
await timeouts.insert({ destination: "kitchen", dueAt: "1h", key: "oven", payload: "check the bread" });
await timeouts.insert({ destination: "kitchen", dueAt: "2h", key: "oven", payload: "check the bread" });
console.log("cancelled:", await timeouts.cancel({ destination: "kitchen", key: "oven" }));

// A loop over what is due: each one is removed when the loop comes back for the next.
await timeouts.insertMany([
  { id: "eggs", destination: "kitchen", dueAt: "60ms" },
  { id: "toast", destination: "kitchen", dueAt: "30ms" },
]);
const done = new AbortController();
for await (const { id } of timeouts.due({ signal: done.signal })) {
  console.log(`due: ${id}`);
  if (id === "eggs") done.abort();
}
console.log("left:", await timeouts.count());
