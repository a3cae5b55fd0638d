// A command or a download that the server itself would answer with 404: said before somebody tries it, with the server's
// own words on where the program has to be put.
import { queryOptions, useQuery } from "@tanstack/react-query";

import { ApiError, get } from "../api/client";
import { Notice } from "./Notice";

const missingProgram = (file: string) =>
  queryOptions({
    queryKey: ["bin", file],
    queryFn: async (): Promise<{ message: string; detail: string } | null> => {
      const path = `/bin/${file}`;
      if ((await fetch(path, { method: "HEAD" })).status !== 404) return null;
      try {
        await get(path);
      } catch (error) {
        if (error instanceof ApiError) return { message: error.message, detail: error.detail };
      }
      return null;
    },
    retry: false,
    staleTime: 60_000,
  });

export function ProgramNotice({ file }: { file: string }) {
  const missing = useQuery(missingProgram(file)).data;
  if (!missing) return null;
  return (
    <Notice kind="warning" title={missing.message}>
      {missing.detail ? <p>{missing.detail}</p> : null}
      <p>Until somebody who runs this deployment puts it there, downloads of it fail.</p>
    </Notice>
  );
}
