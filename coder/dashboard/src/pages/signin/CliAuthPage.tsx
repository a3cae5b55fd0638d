// A session token for the CLI.
import { useQuery } from "@tanstack/react-query";

import { post } from "../../api/client";
import type { GenerateAPIKeyResponse } from "../../api/types";
import { ButtonLink } from "../../ui/Button";
import { CodeBox } from "../../ui/text/CodeBox";
import { Failure } from "../../ui/Failure";
import { Skeleton } from "../../ui/Loading";
import { useTitle } from "../../ui/title";
import { SignInCard } from "./SignInCard";

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
    <SignInCard
      title="Session token"
      description="Copy it and paste it into your terminal, where the login command is waiting. Keep it secret."
    >
      {key.isPending ? <Skeleton className="h-10 w-full" /> : null}
      {key.isError ? <Failure error={key.error} retry={() => void key.refetch()} /> : null}
      {key.data ? <CodeBox command={key.data.key} label="Session token" secret /> : null}
      <ButtonLink to="/workspaces">Go to workspaces</ButtonLink>
    </SignInCard>
  );
}
