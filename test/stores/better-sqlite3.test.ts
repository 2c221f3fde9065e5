import { BETTER_SQLITE3 } from "../support/sqlite-drivers.ts";
import { registerSqliteKit } from "./sqlite-kit.ts";

registerSqliteKit(BETTER_SQLITE3);
