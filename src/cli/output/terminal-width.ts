/** Without a terminal nothing is cut or wrapped: the output goes to a program or a file. */
export const UNBOUNDED = Number.POSITIVE_INFINITY;

export function terminalWidth(): number {
  const { isTTY, columns } = process.stdout;
  return isTTY ? columns || 80 : UNBOUNDED;
}
