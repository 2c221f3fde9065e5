/** Without a terminal nothing is cut or wrapped: the output goes to a program or a file. */
export const UNBOUNDED = Number.POSITIVE_INFINITY;

export function terminalWidth(stream: NodeJS.WriteStream = process.stdout): number {
  return stream.isTTY ? stream.columns || 80 : UNBOUNDED;
}
