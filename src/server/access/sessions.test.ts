import { expect, it } from "vitest";
import { realSystem } from "../../engine/runtime/real-system.ts";
import { createKey, Keyring } from "./auth.ts";
import { Sessions } from "./sessions.ts";

it("many logins with one key end its own oldest session, and none of another key", () => {
  const [admin, reader] = [createKey(), createKey()];
  const keys = [
    { name: "ana", role: "admin", hash: admin.hash },
    { name: "rob", role: "read-only", hash: reader.hash },
  ] as const;
  const now = () => 0;
  const keyring = new Keyring(keys, { now });
  const sessions = new Sessions({ keyring, base: "/", now, fill: realSystem.fill });
  const logIn = (key: string) => {
    const { cookie } = sessions.open(key, { headers: new Headers() });
    return { headers: new Headers({ cookie: cookie.split(";")[0] as string }) };
  };
  const [kept, first] = [logIn(admin.key), logIn(reader.key)];
  for (let count = 0; count < 10_000; count++) logIn(reader.key);
  expect(sessions.find(first)).toBeNull();
  expect(sessions.find(kept)?.identity).toMatchObject({ name: "ana" });
});
