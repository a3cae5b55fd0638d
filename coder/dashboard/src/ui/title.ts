// The title of a page: crumbs joined by " - ", ending in the deployment's name.
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";

import { pageText } from "../api/meta";
import { appearance } from "../api/queries/session";

const inPage = pageText("application-name");

export function useTitle(...crumbs: readonly string[]): void {
  // The frame fetches the name; here it is only observed, so that a new name reaches every page at
  // once.
  const known = useQuery({ ...appearance, enabled: false }).data?.application_name;
  const title = [...crumbs.filter(Boolean), (known ?? inPage) || "Coder"].join(" - ");
  useEffect(() => {
    document.title = title;
  }, [title]);
}
