import type { CompletedCommand, CompletedValue } from "./command-tree.ts";

export const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

/** The cases of a command and an option before the word that is completed. */
export function valueCases(
  commands: readonly CompletedCommand[],
  offer: (value: CompletedValue) => string,
): readonly string[] {
  return commands.flatMap(({ path, options }) =>
    options.flatMap(({ long, short, value }) => {
      if (value === null) return [];
      const names = [long, ...(short === null ? [] : [short])].map((name) => quoted(`${path} ${name}`));
      return [`    ${names.join("|")}) ${offer(value)} ;;`];
    }),
  );
}
