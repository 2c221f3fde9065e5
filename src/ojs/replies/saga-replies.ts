import type { SagaTimeout } from "./wire-replies.ts";

export interface Saga {
  readonly type: string;
  readonly id: string;
  readonly state: unknown;
  readonly version: number;
  readonly started_at: string;
  readonly changed_at: string;
  readonly completed_at: string | null;
  readonly pending: readonly SagaTimeout[];
  readonly undos?: readonly { readonly id: string; readonly name: string; readonly payload?: unknown }[];
  readonly compensation?: {
    readonly started_at: string;
    readonly failed: { readonly undo: string; readonly error: string; readonly at: string } | null;
  } | null;
}
