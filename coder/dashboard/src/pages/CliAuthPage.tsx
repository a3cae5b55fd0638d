// A session token for the command line.
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";

import { post } from "../api/client";
import type { GenerateAPIKeyResponse } from "../api/types";
import { CommandBox } from "../components/CommandBox";
import { Loading } from "../components/Loading";
import { Notice } from "../components/Notice";
import { useTitle } from "../components/title";

export function CliAuthPage() {
  useTitle("CLI Auth");
  const key = useQuery({
    queryKey: ["cli-auth"],
    queryFn: () => post<GenerateAPIKeyResponse>("/api/v2/users/me/keys"),
    staleTime: Infinity,
    refetchOnWindowFocus: false,
    retry: false,
  });
  return (
    <main className="door">
      <div className="card">
        <h1>Session token</h1>
        <p className="faint">Copy it and paste it into your terminal. Nobody else should see it.</p>
        {key.isPending ? <Loading /> : null}
        {key.isError ? <Notice kind="error" title={key.error.message} /> : null}
        {key.data ? <CommandBox command={key.data.key} label="Session token" /> : null}
        <Link className="button" to="/workspaces">Go to workspaces</Link>
      </div>
    </main>
  );
}
