/** A process that hosts sagas until it is killed. */

import { openEngine, silentLogger } from "../../../src/index.ts";
import { logSaga } from "./sagas.ts";

const [store = ""] = process.argv.slice(2);
const engine = await openEngine({ store, timeoutLease: "2s", logger: silentLogger });
engine.host([logSaga]);
process.send?.("ready");
