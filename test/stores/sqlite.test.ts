import { NODE_SQLITE } from "../support/sqlite-drivers.ts";
import { registerSqliteKit } from "./sqlite-kit.ts";

registerSqliteKit(NODE_SQLITE);
