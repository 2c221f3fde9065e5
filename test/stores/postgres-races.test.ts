import { registerPostgresKit } from "./postgres-kit.ts";

registerPostgresKit("races");
