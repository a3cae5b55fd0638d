// Which programs this server hands out below /bin. Asking for a file that is not there leaves an error in the browser's
// log; this list says it without one.
import { queryOptions, useQuery } from "@tanstack/react-query";

import { get } from "../client";
import type { Program } from "../types";

export const programs = queryOptions({
  queryKey: ["programs"],
  queryFn: () => get<Program[]>("/api/v2/programs"),
  staleTime: 60_000,
});

/** The one for a platform (`linux/amd64`), when it is known that the server has none. */
export function useMissingProgram(): (platform: string) => Program | undefined {
  const known = useQuery(programs).data;
  return (platform) =>
    known?.find(
      (program) => `${program.os}/${program.architecture}` === platform && !program.available,
    );
}
