/** The head of a request. Node's request fits without conversion to a web Request. */
export interface RequestHead {
  readonly method: string;
  readonly headers: { get(name: string): string | null };
  readonly body?: ReadableStream | null;
}
