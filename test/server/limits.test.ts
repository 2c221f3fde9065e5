import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  checkLimits,
  checkShape,
  parseBody,
  RateLimiter,
  readBody,
  refuseWide,
} from "../../src/server/http/body-limits.ts";
import { HttpError } from "../../src/server/http/http-error.ts";
import { refused } from "./refused.ts";

const post = (
  body: string | Uint8Array<ArrayBuffer> | ReadableStream | null,
  headers: Record<string, string> = {},
) =>
  new Request("http://x/", { method: "POST", body, headers, ...(body && { duplex: "half" }) } as RequestInit);

function stream(chunks: readonly string[]): {
  body: ReadableStream;
  pulled: () => number;
  isCancelled: () => boolean;
} {
  let pulled = 0;
  let isCancelled = false;
  const body = new ReadableStream({
    pull(controller) {
      const chunk = chunks[pulled++];
      if (chunk === undefined) controller.close();
      else controller.enqueue(new TextEncoder().encode(chunk));
    },
    cancel() {
      isCancelled = true;
    },
  });
  return { body, pulled: () => pulled, isCancelled: () => isCancelled };
}

const failure = async (promise: Promise<unknown>) => {
  const error = await promise.then(
    () => expect.fail("nothing was refused"),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(HttpError);
  return error as HttpError;
};

describe("the body", () => {
  it("is read up to the limit, in one piece or in chunks", async () => {
    expect(await readBody(post("12345"), 5)).toBe("12345");
    expect(await readBody(post(stream(["12", "345"]).body), 5)).toBe("12345");
    expect(await readBody(post(null), 5)).toBe("");
    expect(await readBody(post("", { "content-length": "0" }), 5)).toBe("");
  });

  it("is refused by its named length before a byte is read", async () => {
    const { body, pulled } = stream(["123456"]);
    const before = pulled();
    const error = await failure(readBody(post(body, { "content-length": "6" }), 5));
    expect(error).toMatchObject({ status: 413, code: "payload_too_large" });
    expect(pulled() - before).toBeLessThanOrEqual(1);
  });

  it("a body longer than its Content-Length is cut at the limit", async () => {
    const endless = stream(new Array(1_000).fill("1234"));
    const error = await failure(readBody(post(endless.body, { "content-length": "4" }), 10));
    expect(error.status).toBe(413);
    expect(endless.pulled()).toBeLessThan(10);
    expect(endless.isCancelled()).toBe(true);
  });

  it.each(["-1x", "1e99", "NaN", "99999999999999999999"])("is refused with the length %s", async (length) => {
    expect((await failure(readBody(post("1", { "content-length": length }), 5))).status).toBe(413);
  });

  it("is refused when it is not UTF-8: a lenient reader would store something else", async () => {
    const error = await failure(readBody(post(new Uint8Array([0x22, 0xff, 0x22])), 5));
    expect(error).toMatchObject({ status: 400, code: "invalid_payload" });
  });
});

describe("the shape of a body", () => {
  const limits = { depth: 3, keys: 4 };

  it.each([
    "[[[]]]",
    '{"a":{"b":{"c":1}}}',
    '"[[[[[["',
    '{"[[[[\\"[[[":1}',
    '{"a:b:c:d:e:f":"::::::"}',
    '"\\\\"',
    "[1,2,3,4,5,6,7]",
  ])("may be %s", (text) => {
    expect(() => checkShape(text, limits)).not.toThrow();
    expect(JSON.parse(text)).toBeDefined();
  });

  it.each([
    ["[[[[]]]]", /deeper than 3/],
    ['["\\\\",[[[1]]]]', /deeper than 3/],
    ['{"a":1,"b":2,"c":3,"d":4,"e":5}', /more than 4 keys/],
    ["[".repeat(1_000_000), /deeper than 3/],
    [`{"a":${'{"a":'.repeat(500_000)}`, /deeper than 3/],
  ])("may not be %.30s", (text, message) => {
    expect(() => checkShape(text, limits)).toThrow(message);
  });

  it("depth and keys equal those of the parsed value", () => {
    const count = (value: unknown): { depth: number; keys: number } => {
      if (typeof value !== "object" || value === null) return { depth: 0, keys: 0 };
      const inner = Object.values(value).map(count);
      return {
        depth: 1 + Math.max(0, ...inner.map(({ depth }) => depth)),
        keys:
          (Array.isArray(value) ? 0 : Object.keys(value).length) +
          inner.reduce((sum, { keys }) => sum + keys, 0),
      };
    };
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 8 }), fc.boolean(), (value, isPretty) => {
        const text = JSON.stringify(value, null, isPretty ? 2 : 0);
        const { depth, keys } = count(value);
        expect(() => checkShape(text, { depth, keys })).not.toThrow();
        if (depth > 0) expect(() => checkShape(text, { depth: depth - 1, keys })).toThrow(/deeper/);
        if (keys > 0) expect(() => checkShape(text, { depth, keys: keys - 1 })).toThrow(/keys/);
      }),
      { numRuns: 500 },
    );
  });

  it("any text is accepted or refused with an HttpError", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 200, unit: fc.constantFrom(...'"\\[]{}:, 1') }), (text) => {
        try {
          parseBody(text, checkLimits({ depth: 3, keys: 4 }));
        } catch (error) {
          expect(error).toBeInstanceOf(HttpError);
          expect(error).toMatchObject({ status: 400, code: "invalid_payload" });
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("objects outside of documents", () => {
  const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, 1]));

  it.each([
    ["meta", { meta: keys(1_001) }, "meta: it has more than 1000 keys"],
    ["the fields of a job", keys(1_001), "body: it has more than 1000 keys"],
    [
      "the meta of a job in a batch",
      { jobs: [{ meta: keys(1_001) }] },
      "jobs.meta: it has more than 1000 keys",
    ],
  ])("%s may have 1,000 keys at most", (_name, value, message) => {
    expect(refused(() => refuseWide(value)).message).toContain(message);
  });

  it("a document may have more keys", () => {
    expect(refuseWide({ args: [keys(1_001)], result: keys(1_001), meta: keys(1_000) })).toBeUndefined();
  });

  it("a body may have twice as many lists as keys", () => {
    const lists = (count: number) => `[${new Array(count).fill("[]").join(",")}]`;
    const limits = { depth: 10, keys: 2_000 };
    expect(checkShape(lists(3_999), limits)).toBeUndefined();
    expect(refused(() => checkShape(lists(4_000), limits)).message).toBe(
      "The body has more than 4000 lists and objects",
    );
  });
});

describe("limits that are written wrong", () => {
  it.each([
    [{ body: 0 }, /limits\.body: 0/],
    [{ depth: 1_001 }, /limits\.depth: 1001/],
    [{ keys: 1.5 }, /limits\.keys: 1.5/],
    [{ rate: 0 }, /limits\.rate: 0/],
    [{ size: 1 }, /limits\.size/],
  ])("are refused: %o", (options, message) => {
    expect(() => checkLimits(options as object)).toThrow(message);
  });
});

describe("the rate limit", () => {
  it("the rate limit allows one second's worth at once, then one request per interval", () => {
    const limiter = new RateLimiter();
    const at = (now: number) => limiter.take("a", 4, now);
    expect([at(0), at(0), at(0), at(0)]).toEqual([0, 0, 0, 0]);
    expect(at(0)).toBe(250);
    expect(at(100)).toBe(150);
    expect(at(249)).toBe(1);
    expect(at(250)).toBe(0);
    expect(at(250)).toBe(250);
    expect(at(10_000)).toBe(0);
  });

  it("counts each caller alone", () => {
    const limiter = new RateLimiter();
    expect([limiter.take("a", 1, 0), limiter.take("a", 1, 0), limiter.take("b", 1, 0)]).toEqual([
      0, 1_000, 0,
    ]);
  });

  it("allows one request where the rate is less than one per second", () => {
    const limiter = new RateLimiter();
    expect([limiter.take("a", 0.1, 0), limiter.take("a", 0.1, 0), limiter.take("a", 0.1, 10_000)]).toEqual([
      0, 10_000, 0,
    ]);
  });

  it("a clock that goes back frees no tokens", () => {
    const limiter = new RateLimiter();
    limiter.take("a", 1, 1_000);
    expect(limiter.take("a", 1, 0)).toBe(2_000);
    expect(limiter.take("a", 1, 2_000)).toBe(0);
  });

  it("the rate limiter keeps a bounded number of callers and drops the longest silent one", () => {
    const limiter = new RateLimiter(100);
    for (let index = 0; index < 10_000; index++) {
      limiter.take("busy", 1, 0);
      limiter.take(`other-${index}`, 1, 0);
    }
    expect(limiter.size).toBe(100);
    expect(limiter.take("busy", 1, 0)).toBeGreaterThan(0);
  });
});
