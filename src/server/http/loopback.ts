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
function nameOf(host: string): string {
  const inBrackets = /^\[([^\]]*)\](?::\d+)?$/.exec(host);
  return inBrackets ? (inBrackets[1] as string) : host.replace(/:\d+$/, "");
}

/** Whether a Host header names this machine. Remembers the last one that did: most clients send the same one each time. */
export function ownHosts(): (host: string) => boolean {
  let known = "";
  return (host) => {
    if (host === known && host !== "") return true;
    if (!isLoopback(nameOf(host))) return false;
    known = host;
    return true;
  };
}
