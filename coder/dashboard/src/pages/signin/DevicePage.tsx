// Sign-in with GitHub through a device code.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useSearchParams } from "react-router";

import { get, withQuery } from "../../api/client";
import type { ExternalAuthDevice, OAuth2DeviceFlowCallbackResponse } from "../../api/types";
import { ButtonLink } from "../../ui/Button";
import { Failure } from "../../ui/Failure";
import { Loading } from "../../ui/Loading";
import { Notice } from "../../ui/Notice";
import { useTitle } from "../../ui/title";
import { DeviceCode } from "./DeviceCode";
import { SignInCard } from "./SignInCard";
import { safeTarget } from "./target";

export function DevicePage() {
  useTitle("Authenticate with GitHub");
  const [params] = useSearchParams();
  const state = params.get("state") ?? "";
  const [failed, setFailed] = useState<Error | null>(null);
  const device = useQuery({
    queryKey: ["login", "device"],
    queryFn: () => get<ExternalAuthDevice>("/api/v2/users/oauth2/github/device"),
    enabled: state !== "",
    staleTime: Infinity,
    refetchOnWindowFocus: false,
    retry: false,
  });
  const exchange = async () => {
    const code = device.data?.device_code ?? "";
    const answer = await get<OAuth2DeviceFlowCallbackResponse>(
      withQuery("/api/v2/users/oauth2/github/callback", { code, state }),
    );
    window.location.assign(safeTarget(answer.redirect_url));
  };
  return (
    <SignInCard
      title="Sign in with GitHub"
      foot={
        <ButtonLink variant="quiet" to="/login">
          Sign in another way
        </ButtonLink>
      }
    >
      {state === "" ? (
        <Notice kind="error" title="This sign-in was started in another browser or has expired">
          Start again from the sign-in page.
        </Notice>
      ) : null}
      {device.isFetching ? <Loading /> : null}
      {device.isError ? <Failure error={device.error} retry={() => void device.refetch()} /> : null}
      {failed ? (
        <Failure
          error={failed}
          title="GitHub did not confirm the sign-in"
          retry={() => {
            setFailed(null);
            void device.refetch();
          }}
        />
      ) : null}
      {device.data && !failed ? (
        <DeviceCode device={device.data} exchange={exchange} onFailure={setFailed} />
      ) : null}
    </SignInCard>
  );
}
