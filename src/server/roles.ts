/** What a request may need. `open` asks nobody: health, readiness and the description of the interface. */
export type Right = "open" | "read" | "enqueue" | "cancel" | "work" | "operate";

export type Role = "producer" | "worker" | "admin" | "read-only";

/** Who may do what. This table is the only place that says so; every route names the right it needs. */
export const ROLES: Readonly<Record<Role, readonly Right[]>> = {
  producer: ["open", "read", "enqueue", "cancel"],
  // Handlers enqueue what follows from their work.
  worker: ["open", "read", "enqueue", "work"],
  "read-only": ["open", "read"],
  admin: ["open", "read", "enqueue", "cancel", "work", "operate"],
};
