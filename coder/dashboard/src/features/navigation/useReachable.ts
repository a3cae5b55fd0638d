import { usePermissions } from "../../api/permissions";
import type { NavItem } from "./nav-item";

/** Whether the user may open the link. */
export function useReachable(): (item: NavItem) => boolean {
  const may = usePermissions();
  return (item) => item.allowed?.(may) ?? true;
}
