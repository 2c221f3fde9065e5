import type { CompletedCommand, CompletedOption, CompletedValue } from "./command-tree.ts";
import { quoted, valueCases } from "./shell-text.ts";

/** The script that zsh sources, or finds as `_curfew` in its `fpath`. In zsh, `path` is the search path: it is not ours. */
export function zshScript(commands: readonly CompletedCommand[]): string {
  const paths = commands.slice(1).map(({ path }) => quoted(path));
  const values = valueCases(commands, offer);
  const words = commands.map(({ path, commands: below, options, words: own }) => {
    const plain =
      below.length > 0
        ? describe(
            "command",
            below.map(({ name, says }) => [name, says]),
          )
        : own === null
          ? "return 1"
          : offer(own);
    return `    ${quoted(path)})
      if [[ $PREFIX == -* ]]; then ${describe("option", options.map(flagOf))}; else ${plain}; fi ;;`;
  });
  return `#compdef curfew
# Completion of curfew for zsh. Load it with: source <(curfew completion zsh)
_curfew() {
  local at=curfew
  local -a offered
  local -i i
  for ((i = 2; i < CURRENT; i++)); do
    case "$at \${words[i]}" in
      (${paths.join("|")}) at="$at \${words[i]}" ;;
    esac
  done
  case "$at \${words[CURRENT-1]}" in
${values.join("\n")}
    *)
  case "$at" in
${words.join("\n")}
  esac ;;
  esac
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _curfew "$@"; elif (( $+functions[compdef] )); then compdef _curfew curfew; fi
`;
}

const flagOf = ({ long, says }: CompletedOption) => [long, says] as const;

function offer(value: CompletedValue): string {
  if (value === "unknown") return "return 1";
  if (value === "file") return "_files";
  return `compadd -- ${value.map(quoted).join(" ")}`;
}

/** A colon ends the name of what is described. */
function describe(what: string, items: readonly (readonly [name: string, says: string])[]): string {
  const list = items.map(([name, says]) => quoted(`${name}:${says.replaceAll(":", "\\:")}`));
  return `offered=(${list.join(" ")}); _describe ${what} offered`;
}
