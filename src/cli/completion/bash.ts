import type { CompletedCommand, CompletedValue } from "./command-tree.ts";
import { quoted, valueCases } from "./shell-text.ts";

/** The script that bash sources. Colons of addresses are left alone: no word that it offers has one. */
export function bashScript(commands: readonly CompletedCommand[]): string {
  const paths = commands.slice(1).map(({ path }) => quoted(path));
  const values = valueCases(commands, reply);
  const words = commands.map(({ path, commands: below, options, words: own }) => {
    const flags = options.map(({ long }) => long).join(" ");
    const names = below.map(({ name }) => name).join(" ");
    const plain = below.length > 0 ? reply(names.split(" ")) : own === null ? "return" : reply(own);
    return `    ${quoted(path)})
      if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W ${quoted(flags)} -- "$cur")); else ${plain}; fi ;;`;
  });
  return `# Completion of curfew for bash. Load it with: source <(curfew completion bash)
_curfew() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} path=curfew i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path \${COMP_WORDS[i]}" in
      ${paths.join("|")}) path="$path \${COMP_WORDS[i]}" ;;
    esac
  done
  case "$path $prev" in
${values.join("\n")}
    *)
  case "$path" in
${words.join("\n")}
  esac ;;
  esac
}
complete -F _curfew curfew
`;
}

function reply(value: CompletedValue): string {
  if (value === "unknown") return "return";
  if (value === "file") return 'COMPREPLY=($(compgen -f -- "$cur")); compopt -o filenames 2>/dev/null';
  return `COMPREPLY=($(compgen -W ${quoted(value.join(" "))} -- "$cur"))`;
}
