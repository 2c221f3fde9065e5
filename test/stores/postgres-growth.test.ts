import { registerPostgresKit } from "./postgres-kit.ts";

registerPostgresKit("growth and timeouts");
