interface NamedStep {
  readonly id?: unknown;
  readonly depends_on?: unknown;
  readonly [field: string]: unknown;
}

type Arranged =
  | { readonly type: "chain"; readonly steps: readonly object[] }
  | { readonly type: "group"; readonly jobs: readonly object[] };

/**
 * Turns steps with `depends_on` into chains and groups: each layer depends on all steps of the layer before it. Null for
 * every other graph, and for unknown names.
 */
export function arranged(steps: readonly NamedStep[]): Arranged | null {
  const layers = layersOf(steps);
  if (layers === null) return null;
  const [first] = layers;
  if (layers.length === 1 && first && first.length > 1) return { type: "group", jobs: first.map(plain) };
  return {
    type: "chain",
    steps: layers.map((layer) =>
      layer.length === 1 ? plain(layer[0] as NamedStep) : { type: "group", jobs: layer.map(plain) },
    ),
  };
}

/** The server gives jobs their ids, so the step's name is returned as `step_id`. */
function plain({ id, depends_on: _before, ...job }: NamedStep): object {
  return id === undefined ? job : { ...job, step_id: id };
}

function layersOf(steps: readonly NamedStep[]): NamedStep[][] | null {
  if (new Set(steps.map(({ id }) => id)).size < steps.length) return null;
  const waiting = new Map<unknown, NamedStep[]>();
  for (const step of steps) {
    for (const id of beforeOf(step)) {
      const others = waiting.get(id);
      if (others) others.push(step);
      else waiting.set(id, [step]);
    }
  }
  const layers: NamedStep[][] = [];
  let placed = 0;
  let layer = steps.filter((step) => beforeOf(step).size === 0);
  while (layer.length > 0) {
    layers.push(layer);
    placed += layer.length;
    const ids = layer.map(({ id }) => id);
    const next: NamedStep[] = waiting.get(ids[0]) ?? [];
    // A step that depends on one step of a layer must depend on all of them and on no other step.
    if (!next.every((step) => isExactly(beforeOf(step), ids))) return null;
    layer = next;
  }
  // The rest has a cycle, an unknown name, or depends on a part of a layer.
  return placed === steps.length ? layers : null;
}

function beforeOf({ depends_on }: NamedStep): ReadonlySet<unknown> {
  return new Set(Array.isArray(depends_on) ? depends_on : []);
}

function isExactly(named: ReadonlySet<unknown>, ids: readonly unknown[]): boolean {
  return named.size === ids.length && ids.every((id) => named.has(id));
}
