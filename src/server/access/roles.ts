/** The right that a route needs. `open` needs no key: health, readiness and the API description. */
export type Right = "open" | "read" | "enqueue" | "cancel" | "work" | "operate";

export type Role = "producer" | "worker" | "admin" | "read-only";

/** The rights of each role. Every route names the right that it needs. */
export const ROLES: Readonly<Record<Role, readonly Right[]>> = {
  producer: ["open", "read", "enqueue", "cancel"],
  // Handlers enqueue follow-up jobs.
  worker: ["open", "read", "enqueue", "work"],
  "read-only": ["open", "read"],
  admin: ["open", "read", "enqueue", "cancel", "work", "operate"],
};
