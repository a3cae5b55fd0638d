// A session token for the command line.
import { useQuery } from "@tanstack/react-query";

import { post } from "../api/client";
import type { GenerateAPIKeyResponse } from "../api/types";
import { CommandBox } from "../components/CommandBox";
import { Notice } from "../components/Notice";

export function CliAuthPage() {
  const key = useQuery({
    queryKey: ["cli-auth"],
    queryFn: () => post<GenerateAPIKeyResponse>("/api/v2/users/me/keys"),
    staleTime: Infinity,
    refetchOnWindowFocus: false,
    retry: false,
  });
  return (
    <div className="door">
      <div className="card">
        <h1>Session token</h1>
        <p className="faint">Copy it and paste it into your terminal. Nobody else should see it.</p>
        {key.isError ? <Notice kind="error" title={key.error.message} /> : null}
        {key.data ? <CommandBox command={key.data.key} label="Session token" /> : null}
        <a className="button" href="/workspaces">Go to workspaces</a>
      </div>
    </div>
  );
}
