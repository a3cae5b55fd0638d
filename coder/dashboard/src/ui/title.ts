// The name of a page: crumbs joined by " - ", ending in the product's name.
import { useEffect } from "react";

export function useTitle(...crumbs: readonly string[]): void {
  const title = [...crumbs.filter(Boolean), "Coder"].join(" - ");
  useEffect(() => {
    document.title = title;
  }, [title]);
}
