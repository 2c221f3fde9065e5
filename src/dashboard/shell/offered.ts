import type { PageEntry } from "../pages.ts";
import { isAcrossTenants, may } from "../state/session.ts";

/** Whether the viewer is shown the way to a page. The server decides what the page may read. */
export const isOffered = ({ right = "read", isAcrossTenants: isAcross = false }: PageEntry): boolean =>
  may(right) && (!isAcross || isAcrossTenants());
