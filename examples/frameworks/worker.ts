/** A worker as a process of its own, beside any of these servers: `STORE=sqlite:shop.db node worker.ts`. */
import { openEngine } from "curfew";
import { processors } from "./jobs.ts";

const engine = await openEngine({ store: process.env.STORE ?? "sqlite:shop.db" });
engine.work({ processors, drain: "20s" });
engine.closeOnSignals();
console.log("working");
