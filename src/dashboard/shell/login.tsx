import { useEffect, useState } from "preact/hooks";
import type { ApiError } from "../api/client.ts";
import { logIn } from "../state/session.ts";
import { Button } from "../ui/button.tsx";
import { TextField } from "../ui/fields.tsx";
import { Logo } from "./navigation.tsx";

/** Asks for a key. The key goes to the server once; a cookie that no script can read stands for it. */
export function Login() {
  const [key, setKey] = useState("");
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    document.title = "Log in · curfew";
  }, []);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    const result = await logIn(key.trim());
    setBusy(false);
    if (!result.ok) setError(result.error);
  };
  return (
    <main class="alone">
      <form class="card login" onSubmit={submit}>
        <h1>
          <Logo /> curfew
        </h1>
        <TextField
          label="API key"
          type="password"
          value={key}
          onInput={setKey}
          isMono
          isFirst
          placeholder="curfew_…"
          error={error?.message}
          hint={
            <>
              Make one with <code>curfew keys new</code>. It is sent once and never kept in the browser.
            </>
          }
        />
        <Button
          kind="primary"
          submit
          busy={isBusy}
          whyNot={key.trim() === "" ? "Write a key first." : undefined}
        >
          Log in
        </Button>
      </form>
    </main>
  );
}
