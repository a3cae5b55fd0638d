// Authorized applications (OAuth2): their details, and how to revoke them.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { AppWindow } from "lucide-react";
import { useState } from "react";

import { remove, withQuery } from "../../api/client";
import { authorizedApps } from "../../api/queries/account";
import { experiments } from "../../api/queries/session";
import type { OAuth2ProviderApp } from "../../api/types";
import { useMe } from "../../features/session/useMe";
import { Ago } from "../../ui/Ago";
import { Avatar } from "../../ui/Avatar";
import { Button } from "../../ui/Button";
import { Card } from "../../ui/Card";
import { Confirm } from "../../ui/Confirm";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";

export function AuthorizedAppsPage() {
  useTitle("Settings");
  const me = useMe();
  const queries = useQueryClient();
  const enabledExperiments = useQuery(experiments);
  const off =
    enabledExperiments.data !== undefined &&
    !enabledExperiments.data.includes("oauth2") &&
    !enabledExperiments.data.includes("*");
  const apps = useQuery({
    ...authorizedApps(me.id),
    enabled: enabledExperiments.data !== undefined && !off,
  });
  const [revoking, setRevoking] = useState<OAuth2ProviderApp | null>(null);
  const revoke = async () => {
    if (!revoking) return;
    await remove(withQuery("/oauth2/tokens", { client_id: revoking.id }));
    await queries.invalidateQueries({ queryKey: ["oauth2-provider"] });
    toast.done(`Access of ${revoking.name} revoked successfully.`);
  };
  return (
    <>
      <PageHead
        title="OAuth2 applications"
        description="Programs that you have allowed to use your account."
      />
      {apps.isPending && !off ? <SkeletonRows rows={2} /> : null}
      {apps.isError ? <Failure error={apps.error} retry={() => void apps.refetch()} /> : null}
      {off || apps.data?.length === 0 ? (
        <Card>
          <Empty icon={AppWindow} title="No authorized applications">
            {off
              ? "This deployment does not let other applications sign in with it."
              : "Applications that you authorize to use your account appear here, where you can revoke their access."}
          </Empty>
        </Card>
      ) : null}
      {apps.data && apps.data.length > 0 ? (
        <Card>
          <ul aria-label="Applications" className="divide-y divide-line">
            {apps.data.map((app) => (
              <li key={app.id} className="flex flex-wrap items-center gap-3 px-5 py-3">
                <Avatar name={app.name} src={app.icon} square />
                <div className="min-w-0 flex-1">
                  <p className="font-medium [overflow-wrap:anywhere]">{app.name}</p>
                  <p className="truncate text-sm text-muted">
                    {hostOf(app.callback_url)}
                    {app.last_used ? (
                      <>
                        {" "}
                        · last used <Ago at={app.last_used} />
                      </>
                    ) : null}
                  </p>
                </div>
                <Button size="sm" onClick={() => setRevoking(app)}>
                  Revoke…
                </Button>
              </li>
            ))}
          </ul>
        </Card>
      ) : null}
      <Confirm
        open={revoking !== null}
        onClose={() => setRevoking(null)}
        title={`Revoke ${revoking?.name ?? ""}?`}
        confirm="Revoke"
        onConfirm={revoke}
      >
        <p>All of its tokens for your account are revoked at once. It can ask for access again.</p>
      </Confirm>
    </>
  );
}

function hostOf(address: string): string {
  try {
    return new URL(address).host;
  } catch {
    return address;
  }
}
