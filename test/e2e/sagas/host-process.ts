/** A process that hosts sagas until it is killed. */

import { openEngine } from "../../../src/index.ts";
import { logSaga } from "./sagas.ts";

const [store = ""] = process.argv.slice(2);
const engine = await openEngine({ store, timeoutLease: "2s" });
engine.host([logSaga]);
process.send?.("ready");
