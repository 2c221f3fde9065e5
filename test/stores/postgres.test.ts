import { registerPostgresKit } from "./postgres-kit.ts";

registerPostgresKit("all others");
