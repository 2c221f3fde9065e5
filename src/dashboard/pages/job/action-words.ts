/** What `why` advises, as the server says it to programs. */
export interface Advised {
  readonly name: string;
  readonly target: string | null;
  readonly text: string;
}

/** The server names calls of the library. Here somebody looks at a page, so each is said as what to press, or where. */
const CALLS: readonly (readonly [call: RegExp, words: string])[] = [
  [/\(engine\.advise\(\) says how much\)/, "(Advice says how much)"],
  [/engine\.advise\(\) says/, "the page Advice says"],
  [/engine\.audit says/, "the page Audit says"],
  [/call engine\.retry\("[^"]*"\)/i, "press Retry"],
  [/call engine\.cancel\("[^"]*"\)/i, "press Cancel"],
  [/engine\.cancel\("[^"]*"\)/, "press Cancel"],
  [/call engine\.extend\("[^"]*", \{ attempt: "30m" \}\)/i, "press Extend"],
  [/call engine\.extend\("[^"]*", (?:…|\{ total \})\)/i, "press Extend"],
  [/call engine\.activate\("[^"]*"\)/i, "press Run now"],
  [/call engine\.job\("[^"]*"\)\.runNow\(\)/i, "press Run now"],
  [/call engine\.limits\.put\("[^"]*", (?:…|\{ rate: … \})\)/i, "raise the limit on the page Limits"],
  [/call engine\.queues\.resume\("[^"]*"\)/i, "resume the queue"],
  [
    /give the key more weight with engine\.queues\.configure\("[^"]*", \{ fair: \{ weights \} \}\)/i,
    "give the key more weight in the settings of the queue",
  ],
  [
    /call engine\.queues\.configure\("[^"]*", \{ concurrency \}\) with more/i,
    "raise the concurrency of the queue",
  ],
  [/call engine\.maintenance\.end\(\)/i, "end the maintenance on the page System"],
];

/** The advice, or a reason, in the words of the dashboard. */
export function wordsOf({ text }: Pick<Advised, "text">): string {
  const said = CALLS.reduce((words, [call, instead]) => words.replace(call, instead), text);
  return `${said.charAt(0).toUpperCase()}${said.slice(1)}`;
}

const FORMS: Readonly<Record<string, readonly [form: string, label: string]>> = {
  retry: ["retry", "Retry…"],
  cancel: ["cancel", "Cancel…"],
  extend: ["extend", "Extend…"],
  activate: ["run", "Run now…"],
};

const PAGES: Readonly<Record<string, readonly [page: (target: string) => string, label: string]>> = {
  "raise-limit": [() => "limits", "Open Limits"],
  "resume-queue": [(queue) => `queues/${encodeURIComponent(queue)}`, "Open the queue"],
  "start-worker": [() => "workers", "Open Workers"],
  "look-at-worker": [() => "workers", "Open Workers"],
  "look-at-job": [(id) => `jobs/${encodeURIComponent(id)}`, "Open that job"],
  "look-at-workflow": [(id) => `workflows/${encodeURIComponent(id)}`, "Open the workflow"],
  "end-maintenance": [() => "system", "Open System"],
};

/** Where the advice is followed: a form of the job's page, or a path below the base. */
export interface Place {
  readonly label: string;
  readonly form?: string;
  readonly path?: string;
}

export function placeOf({ name, target }: Advised): Place | null {
  const form = FORMS[name];
  if (form) return { form: form[0], label: form[1] };
  const page = PAGES[name];
  return page ? { path: page[0](target ?? ""), label: page[1] } : null;
}
