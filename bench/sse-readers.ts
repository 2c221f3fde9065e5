/** Readers of live events for `bench/server.ts --readers N`, in a process of their own. Takes the URL and how many. */
import { connect } from "node:net";

const [url = "", count = "0"] = process.argv.slice(2);
const { hostname, port, host } = new URL(url);
let bytes = 0;
let open = 0;
for (let nth = 0; nth < Number(count); nth++) {
  const socket = connect({ host: hostname, port: Number(port) }, () => {
    socket.write(`GET /ojs/v1/events/stream HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  });
  socket.once("data", () => {
    open += 1;
    if (open === Number(count)) process.send?.({ open });
  });
  socket.on("data", (chunk) => {
    bytes += chunk.length;
  });
  socket.on("error", () => {});
}
process.on("message", () => process.send?.({ bytes }));
process.on("disconnect", () => process.exit(0));
