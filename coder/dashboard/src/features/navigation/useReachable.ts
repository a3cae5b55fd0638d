import { usePermissions } from "../../api/permissions";
import type { NavItem } from "./nav-item";

/** Whether the person may go there. */
export function useReachable(): (item: NavItem) => boolean {
  const may = usePermissions();
  return (item) => item.allowed?.(may) ?? true;
}
