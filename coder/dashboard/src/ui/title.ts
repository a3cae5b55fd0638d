// The name of a page: crumbs joined by " - ", ending in what this deployment is called.
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";

import { pageText } from "../api/meta";
import { appearance } from "../api/queries/session";

const inPage = pageText("application-name");

export function useTitle(...crumbs: readonly string[]): void {
  // The frame asks for it; here it is only followed, so that a new name is on every page at once.
  const known = useQuery({ ...appearance, enabled: false }).data?.application_name;
  const title = [...crumbs.filter(Boolean), (known ?? inPage) || "Coder"].join(" - ");
  useEffect(() => {
    document.title = title;
  }, [title]);
}
