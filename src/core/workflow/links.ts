/** What is wrong with the names that a step of a graph waits for. `at` is the position in its list. */
export interface LinkProblem {
  readonly step: number;
  readonly at?: number;
  readonly value: string;
  readonly fix: string;
}

/** For each step, the positions of the steps that it waits for; or the first problem. */
export type Links = { readonly after: readonly (readonly number[])[] } | { readonly problem: LinkProblem };

/** The most names that one cycle is reported with. */
const MOST_NAMED = 10;

/** Resolves the names that steps wait for. Each name must be that of another step, and there must be no cycle. */
export function linkSteps(names: readonly string[], after: readonly (readonly string[])[]): Links {
  const places = new Map(names.map((name, place) => [name, place]));
  const links: number[][] = [];
  for (const [step, list] of after.entries()) {
    const link = new Set<number>();
    for (const [at, name] of list.entries()) {
      const place = places.get(name);
      const fix = wrongName(place, step, link);
      if (fix !== undefined) return { problem: { step, at, value: name, fix } };
      link.add(place as number);
    }
    links.push([...link]);
  }
  const cycle = cycleOf(links);
  if (cycle === null) return { after: links };
  const path = cycle.map((place) => names[place] as string);
  const shown = path.length > MOST_NAMED ? [...path.slice(0, MOST_NAMED), "…"] : path;
  const step = cycle[0] as number;
  const at = links[step]?.indexOf(cycle[1] as number) ?? 0;
  const fix = `these steps wait for each other (${shown.join(" after ")}): leave one of the names out`;
  return { problem: { step, at, value: path[1] as string, fix } };
}

function wrongName(place: number | undefined, step: number, link: ReadonlySet<number>): string | undefined {
  if (place === undefined) return "there is no step of this name: use the name of another step";
  if (place === step) return "a step cannot wait for itself: leave it out";
  return link.has(place) ? "it is named twice: leave one out" : undefined;
}

/** The steps in an order in which each comes after those that it waits for. Steps of a cycle are left out. */
export function inOrder(after: readonly (readonly number[])[]): number[] {
  const left = after.map((list) => list.length);
  const before: number[][] = after.map(() => []);
  for (const [step, list] of after.entries()) for (const place of list) before[place]?.push(step);
  const order = left.flatMap((count, step) => (count === 0 ? [step] : []));
  // `order` grows while it is read.
  for (const place of order)
    for (const step of before[place] ?? []) {
      left[step] = (left[step] ?? 0) - 1;
      if (left[step] === 0) order.push(step);
    }
  return order;
}

/** The steps of one cycle, the first of them again at its end; null if there is none. */
function cycleOf(after: readonly (readonly number[])[]): number[] | null {
  const good = new Set(inOrder(after));
  if (good.size === after.length) return null;
  const path: number[] = [];
  const seen = new Map<number, number>();
  // Each step that is left waits for another one that is left, so this path meets itself.
  let step = after.findIndex((_, place) => !good.has(place));
  while (!seen.has(step)) {
    seen.set(step, path.length);
    path.push(step);
    step = after[step]?.find((place) => !good.has(place)) as number;
  }
  return [...path.slice(seen.get(step)), step];
}
