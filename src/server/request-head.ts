/** What is looked at of a request; Node's own request fits into it without being made into a web one. */
export interface RequestHead {
  readonly method: string;
  readonly headers: { get(name: string): string | null };
  readonly body?: ReadableStream | null;
}
