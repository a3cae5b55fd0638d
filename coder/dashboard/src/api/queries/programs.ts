// The agent and CLI binaries that this server offers below /bin. Requesting a missing file would
// leave an error in the browser's console; this list does not.
import { queryOptions, useQuery } from "@tanstack/react-query";

import { get } from "../client";
import type { Program } from "../types";

export const programs = queryOptions({
  queryKey: ["programs"],
  queryFn: () => get<Program[]>("/api/v2/programs"),
  staleTime: 60_000,
});

/** The program for a platform (`linux/amd64`) that the server is known not to have. */
export function useMissingProgram(): (platform: string) => Program | undefined {
  const known = useQuery(programs).data;
  return (platform) =>
    known?.find(
      (program) => `${program.os}/${program.architecture}` === platform && !program.available,
    );
}
