import { lookup } from "node:dns/promises";
import {
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
} from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { isIP, type LookupFunction, type Socket } from "node:net";
import { type AllowList, checkEndpoint, hostOf, refusedAddress } from "../core/webhook/endpoint.ts";
import { toCloudEvent } from "../ojs/cloud-event.ts";
import type { System } from "../ports/system.ts";
import type { WebhookAnswer, WebhookCall, WebhookSender } from "../ports/webhooks.ts";
import { type Resolve, SharedLookups } from "./shared-lookups.ts";
import { signatureOf } from "./sign.ts";

export interface HttpSenderOptions {
  readonly system: Pick<System, "monotonic" | "after">;
  readonly allowed: AllowList;
  readonly version: string;
  /** Default: the resolver of the operating system. */
  readonly resolve?: Resolve | undefined;
}

/** A body is read up to this many bytes and this long after the status. More is of no use. */
const BODY_BYTES = 4_096;
const BODY_WITHIN = 1_000;
const TEXT_LIMIT = 1_000;
const HEADER_BYTES = 16_384;
const SOCKETS = 64;
const IDLE_SOCKETS = 16;

/** No call was made: the address is not public and not allowed. */
class AddressRefused extends Error {
  override readonly name = "AddressRefused";
  readonly code = "address_refused";
}

/** The endpoint had closed a connection that was kept open. The call is made again at once, on a new one. */
class IdleConnectionLost extends Error {
  override readonly name = "IdleConnectionLost";
}

const byOperatingSystem: Resolve = async (host) =>
  (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address);

/**
 * Calls endpoints by HTTP. A server that sends requests to any URL can be used to reach what only it can reach, so the
 * address is checked where it counts: in the look-up that the connection itself makes, and again on the connected
 * socket. Redirects are answers like others and are not followed.
 */
export function httpSender({
  system,
  allowed,
  version,
  resolve = byOperatingSystem,
}: HttpSenderOptions): WebhookSender {
  const options = { keepAlive: true, maxSockets: SOCKETS, maxFreeSockets: IDLE_SOCKETS, timeout: 60_000 };
  const lookups = new SharedLookups(resolve);
  const agents = { "http:": new HttpAgent(options), "https:": new HttpsAgent(options) };
  return {
    allowed,
    async send(call) {
      const from = system.monotonic();
      // The allow-list may have changed since the subscription was made.
      const url = new URL(checkEndpoint(call.url, "url", allowed));
      const host = hostOf(url);
      if (isIP(host) !== 0) refuseAddress(allowed, host, host);
      const parts: Connecting = {
        agent: agents[url.protocol as "http:" | "https:"],
        lookup: guardedLookup(allowed, host, () => lookups.of(host, call.signal)),
        version,
        check: (address) => refuseAddress(allowed, host, address),
      };
      const response = await requestOf(call, url, parts).catch((error: unknown) => {
        if (!(error instanceof IdleConnectionLost) || call.signal.aborted) throw error;
        return requestOf(call, url, parts);
      });
      const elapsed = system.monotonic() - from;
      const text = await beginningOf(response, system);
      return { status: response.statusCode ?? 0, elapsed, text, retryAfter: retryAfterOf(response) };
    },
    close() {
      for (const agent of Object.values(agents)) agent.destroy();
    },
  };
}

function refuseAddress(allowed: AllowList, host: string, address: string): void {
  const kind = refusedAddress(allowed, host, address);
  if (kind !== null) throw new AddressRefused(`the address of ${host} must not be called: it is ${kind}`);
}

/** Answers the look-up of a connection. One address that must not be called refuses all: a mixed answer is an attack. */
function guardedLookup(
  allowed: AllowList,
  host: string,
  addressesOf: () => ReturnType<Resolve>,
): LookupFunction {
  return (_name, { all }, callback) => {
    addressesOf()
      .then((addresses) => {
        if (addresses.length === 0) throw new AddressRefused(`${host} has no address`);
        for (const address of addresses) refuseAddress(allowed, host, address);
        return addresses.map((address) => ({ address, family: isIP(address) }));
      })
      .then(
        (found) => {
          const [first] = found as [(typeof found)[number]];
          if (all) callback(null, found);
          else callback(null, first.address, first.family);
        },
        (error: NodeJS.ErrnoException) => callback(error, []),
      );
  };
}

interface Connecting {
  readonly agent: HttpAgent;
  readonly lookup: LookupFunction;
  readonly version: string;
  /** Throws if the address must not be called. */
  readonly check: (address: string) => void;
}

/** Resolves with the head of the reply. */
function requestOf(call: WebhookCall, url: URL, parts: Connecting): Promise<IncomingMessage> {
  const { body, headers } = messageOf(call, parts.version);
  const { signal } = call;
  const options: RequestOptions = {
    method: "POST",
    agent: parts.agent,
    lookup: parts.lookup,
    headers,
    signal,
    maxHeaderSize: HEADER_BYTES,
  };
  return new Promise((resolve, reject) => {
    const request = (url.protocol === "https:" ? httpsRequest : httpRequest)(url, options, resolve);
    request.on("error", (error: NodeJS.ErrnoException) => {
      const isIdle = request.reusedSocket && error.code === "ECONNRESET";
      reject(isIdle ? new IdleConnectionLost(error.message, { cause: error }) : error);
    });
    // A server must not switch protocols, and its hints before the reply are of no use.
    request.on("upgrade", (_response, socket) => {
      socket.destroy();
      reject(new Error("the endpoint tried to switch protocols"));
    });
    request.on("socket", (socket) => {
      const send = () => {
        try {
          parts.check(remoteOf(socket));
          request.end(body);
        } catch (error) {
          request.destroy(error as Error);
        }
      };
      // Nothing is sent before the address of the connection is known.
      if (socket.connecting) socket.once("connect", send);
      else send();
    });
  });
}

/** A listener for both kinds names IPv4 peers as ::ffff:a.b.c.d. */
function remoteOf({ remoteAddress = "" }: Socket): string {
  return remoteAddress.replace(/^::ffff:(?=\d+\.)/i, "");
}

function messageOf(call: WebhookCall, version: string) {
  const { events, isBatch, subscription, delivery, secrets, at } = call;
  const envelopes = events.map((event) => toCloudEvent(event));
  const body = JSON.stringify(isBatch ? envelopes : envelopes[0]);
  const timestamp = String(Math.floor(at / 1_000));
  const headers = {
    Accept: "*/*",
    ...call.headers,
    "Content-Type": "application/json",
    "Content-Length": Buffer.byteLength(body),
    "User-Agent": `OJS-Webhook/1.0 curfew/${version}`,
    "X-OJS-Event-Type": isBatch ? "webhook.batch" : (events[0]?.name ?? "none"),
    ...(isBatch && { "X-OJS-Event-Count": events.length }),
    "X-OJS-Delivery-ID": delivery,
    "X-OJS-Subscription-ID": subscription,
    "X-OJS-Timestamp": timestamp,
    "X-OJS-Signature": signatureOf(secrets, timestamp, body),
  };
  return { body, headers };
}

/** The beginning of a body. The status has decided already, so a body that is slow, endless or cut off changes nothing. */
function beginningOf(response: IncomingMessage, system: Pick<System, "after">): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    let isOver = false;
    const end = (isWhole: boolean) => {
      if (isOver) return;
      isOver = true;
      timer.cancel();
      // Only a connection whose reply was read to its end is used again.
      if (!isWhole) response.destroy();
      resolve(Buffer.concat(chunks).toString("utf8").slice(0, TEXT_LIMIT).toWellFormed());
    };
    const timer = system.after(BODY_WITHIN, () => end(false), { keepAlive: true });
    response.on("data", (chunk: Buffer) => {
      chunks.push(chunk.subarray(0, BODY_BYTES - Math.min(size, BODY_BYTES)));
      size += chunk.length;
      if (size > BODY_BYTES) end(false);
    });
    response.on("end", () => end(true));
    response.on("error", () => end(false));
    response.on("close", () => end(false));
  });
}

const MOST_SECONDS = 86_400;

/** Whole seconds; a date is ignored, because the clock of the endpoint may be wrong. */
function retryAfterOf({ headers }: IncomingMessage): WebhookAnswer["retryAfter"] {
  const said = headers["retry-after"];
  return said !== undefined && /^\d{1,9}$/.test(said) ? Math.min(Number(said), MOST_SECONDS) * 1_000 : null;
}
