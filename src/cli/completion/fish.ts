import type { CompletedCommand, CompletedOption } from "./command-tree.ts";

/** The script that fish sources, or finds in its folder of completions. */
export function fishScript(commands: readonly CompletedCommand[]): string {
  const paths = commands.slice(1).map(({ path }) => quoted(path));
  const lines = commands.flatMap(({ path, commands: below, options, words }) => {
    const at = `complete -c curfew -n ${quoted(`__curfew_at ${quoted(path)}`)}`;
    const own =
      words === "file"
        ? [`${at} -F`]
        : typeof words === "object" && words
          ? [`${at} -a ${quoted(words.join(" "))}`]
          : [];
    return [
      ...below.map(({ name, says }) => `${at} -a ${name} -d ${quoted(says)}`),
      ...own,
      ...options.map((option) => `${at} ${optionText(option)}`),
    ];
  });
  return `# Completion of curfew for fish. Load it with: curfew completion fish | source
function __curfew_at
  set -l path curfew
  for word in (commandline -opc)[2..-1]
    switch "$path $word"
      case ${paths.join(" ")}
        set path "$path $word"
    end
  end
  test "$path" = "$argv[1]"
end
complete -c curfew -f
${lines.join("\n")}
`;
}

function optionText({ long, short, says, value }: CompletedOption): string {
  const names = `-l ${long.slice(2)}${short === null ? "" : ` -s ${short.slice(1)}`}`;
  const wants =
    value === null
      ? ""
      : value === "file"
        ? " -rF"
        : value === "unknown"
          ? " -x"
          : ` -xa ${quoted(value.join(" "))}`;
  return `${names}${wants} -d ${quoted(says)}`;
}

/** In single quotes fish reads backslashes before quotes and backslashes only. */
const quoted = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
