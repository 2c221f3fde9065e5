/** What `bench/server.ts` is held against: a server that parses a body and answers, and does nothing in between. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** About as long as a fetched job. */
const TEXT = JSON.stringify({ jobs: [{ id: "0".repeat(36), padding: "-".repeat(600) }] });

const server = createServer(async (incoming, outgoing) => {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  JSON.parse(Buffer.concat(chunks).toString());
  outgoing.writeHead(200, {
    "Content-Type": "application/openjobspec+json",
    "Content-Length": Buffer.byteLength(TEXT),
  });
  outgoing.end(TEXT);
});
let usage = process.cpuUsage();
process.on("message", (message) => {
  if (message === "usage") {
    const { user, system } = process.cpuUsage(usage);
    usage = process.cpuUsage();
    process.send?.({ cpu: user + system });
  } else {
    server.close(() => process.disconnect());
    server.closeAllConnections();
  }
});
server.listen(0, "127.0.0.1", () => {
  process.send?.({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
});
