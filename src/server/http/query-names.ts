import { z } from "zod";
import { show } from "../../core/errors.ts";
import { nearestName } from "../../core/nearest-name.ts";
import { isAudited, type Route } from "../route.ts";
import { HttpError, refusedField } from "./http-error.ts";

/** Parameters that say the same under two names, or where a page begins. Two different answers contradict each other. */
export const EITHER: readonly (readonly [string, string])[] = [
  ["per_page", "limit"],
  ["queue", "queues"],
  ["type", "types"],
  ["cursor", "after"],
  ["page", "cursor"],
  ["before", "cursor"],
];

const known = new WeakMap<Route, ReadonlySet<string>>();

/** The parameters that a route reads. */
export function queryNames(route: Route): ReadonlySet<string> {
  const names = known.get(route);
  if (names) return names;
  const made = new Set(route.query instanceof z.ZodObject ? Object.keys(route.query.shape) : []);
  if (isAudited(route)) made.add("reason");
  known.set(route, made);
  return made;
}

/**
 * The query of a request. A parameter that the route does not read is refused: a filter that nobody applies would make a
 * script act on foreign jobs.
 */
export function readQuery(
  route: Route,
  lists: Readonly<Record<string, readonly string[]>>,
): Record<string, string> {
  const query: Record<string, string> = {};
  const names = Object.keys(lists);
  for (const name of names) {
    const [value, second] = lists[name] as readonly string[];
    if (!queryNames(route).has(name)) throw unknown(route, name);
    if (second !== undefined) {
      throw refusedField(name, `it is sent twice, with ${show(value)} and ${show(second)}; send it once`);
    }
    query[name] = value as string;
  }
  // Requests of workers have no query, and one parameter contradicts nothing.
  if (names.length < 2) return query;
  for (const [one, other] of EITHER) {
    const [value, second] = [query[one], query[other]];
    if (value === undefined || second === undefined || value === second || isFirst(one, value)) continue;
    const message = `${one}: ${show(value)} contradicts ${other}; send one of them`;
    throw new HttpError(400, "invalid_request", message, { details: { field: one } });
  }
  return query;
}

/** The public admin page says with every list that it wants the first page. */
function isFirst(name: string, value: string): boolean {
  return name === "page" && value === "1";
}

function unknown(route: Route, name: string): HttpError {
  const names = [...queryNames(route)].sort();
  const near = nearestName(name, names);
  const meant = near === undefined ? "" : `did you mean ${near}? `;
  const fix = names.length === 0 ? "leave it out" : `${meant}send only ${names.join(", ")}`;
  const message = `query: ${show(name.slice(0, 100))} is no parameter of ${route.method} ${route.path}; ${fix}`;
  return new HttpError(400, "invalid_request", message, { details: { field: name.slice(0, 100) } });
}
