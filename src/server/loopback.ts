/** Whether a host name or address means this machine only. */
export function isLoopback(host: string): boolean {
  return (
    /^(?:.+\.)?localhost$/i.test(host) ||
    /^127(?:\.\d{1,3}){3}$/.test(host) ||
    host === "::1" ||
    host === "::ffff:127.0.0.1"
  );
}

/** The name in a Host header, without the port. */
export function nameOf(host: string): string {
  const inBrackets = /^\[([^\]]*)\](?::\d+)?$/.exec(host);
  return inBrackets ? (inBrackets[1] as string) : host.replace(/:\d+$/, "");
}
