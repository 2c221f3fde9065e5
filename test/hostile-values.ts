/** Values of user code that throw when they are read. The tests of the engine and the simulator share them. */

/** An object that no operation can read: even `instanceof` throws. */
function revoked(target: object): unknown {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

function throwing(): never {
  throw revoked({});
}

function errorWith(keys: readonly string[]): Error {
  const error = new Error("read me");
  for (const key of keys) Object.defineProperty(error, key, { get: throwing, enumerable: true });
  return error;
}

function cyclic(): Error {
  const error = new Error("a circle");
  error.cause = error;
  return error;
}

const ALL_TRAPS: ProxyHandler<object> = {
  get: throwing,
  has: throwing,
  ownKeys: throwing,
  getPrototypeOf: throwing,
  getOwnPropertyDescriptor: throwing,
};

/** Things to throw, by what is wrong with them. */
export const HOSTILE_THROWS: readonly (readonly [name: string, make: () => unknown])[] = [
  ["a revoked Proxy", () => revoked({})],
  ["a revoked Proxy of a function", () => revoked(() => {})],
  ["a revoked Proxy of an Error", () => revoked(new Error("gone"))],
  ["a Proxy whose traps throw", () => new Proxy({}, ALL_TRAPS)],
  ["an Error with throwing getters", () => errorWith(["name", "message", "stack", "cause", "code"])],
  ["an Error whose cause cannot be read", () => new Error("outer", { cause: revoked({}) })],
  ["an Error that is its own cause", cyclic],
  ["an Error whose message is no text", () => Object.assign(new Error(), { message: revoked({}) })],
  ["an object without a prototype", () => Object.create(null)],
  ["an object with a throwing toString", () => ({ toString: throwing, [Symbol.toPrimitive]: throwing })],
  [
    "an object with a throwing toStringTag",
    () => ({
      x: 1n,
      get [Symbol.toStringTag]() {
        return throwing();
      },
    }),
  ],
  ["a symbol", () => Symbol("thrown")],
  ["undefined", () => undefined],
];

// biome-ignore-start lint/suspicious/noThenProperty: these objects pretend to be promises.
/** Things to return, by what is wrong with them. Each makes the attempt fail. */
export const HOSTILE_RETURNS: readonly (readonly [name: string, make: () => unknown])[] = [
  ["a revoked Proxy", () => revoked({})],
  ["a Proxy whose traps throw", () => new Proxy({}, ALL_TRAPS)],
  [
    "an object with a throwing getter",
    () => ({
      get x() {
        return throwing();
      },
    }),
  ],
  [
    "an object with a throwing then getter",
    () => ({
      get then() {
        return throwing();
      },
    }),
  ],
  ["a thenable that throws", () => ({ then: throwing })],
  [
    "a thenable that rejects with a revoked Proxy",
    () => ({ then: (_: unknown, reject: (error: unknown) => void) => reject(revoked({})) }),
  ],
  [
    "a thenable that resolves with a revoked Proxy",
    () => ({ then: (resolve: (value: unknown) => void) => resolve(revoked({})) }),
  ],
  [
    "an object with a hidden toJSON that throws",
    () => Object.defineProperty({}, "toJSON", { value: throwing }),
  ],
  [
    "an object with a hidden toJSON that returns undefined",
    () => Object.defineProperty({}, "toJSON", { value: () => undefined }),
  ],
];
// biome-ignore-end lint/suspicious/noThenProperty: see above.
