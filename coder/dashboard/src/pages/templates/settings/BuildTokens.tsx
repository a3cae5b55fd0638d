// The setting that gives session tokens of a template's builds all roles of their owners.
import { useQuery, useQueryClient } from "@tanstack/react-query";

import { put } from "../../../api/client";
import { setServerData } from "../../../api/optimistic";
import { usePermissions } from "../../../api/permissions";
import { templateBuildTokens } from "../../../api/queries/templates";
import type { TemplateBuildTokens } from "../../../api/types";
import { Section } from "../../../ui/Card";
import { Failure } from "../../../ui/Failure";
import { Switch } from "../../../ui/forms/Toggle";
import { SkeletonRows } from "../../../ui/Loading";
import { Stack } from "../../../ui/Page";
import { toast } from "../../../ui/toast";

const LIMITS =
  "A workspace gets a session token of its owner. It carries the owner’s member permissions and " +
  "administrator roles of this organization.";
const EXPOSES =
  "The template’s authors and the organization’s administrators can then act with every role of " +
  "its users, including site owners. Turning it off limits existing tokens at once.";

export function BuildTokens({ template }: { template: string }) {
  const queries = useQueryClient();
  const may = usePermissions();
  const setting = useQuery(templateBuildTokens(template));
  const save = (all_roles: boolean) =>
    put<TemplateBuildTokens>(`/api/v2/templates/${template}/build-tokens`, { all_roles }).then(
      (answer) => setServerData(queries, templateBuildTokens(template).queryKey, answer),
      (error: unknown) => toast.failed("Failed to update the session tokens", error),
    );
  const isOn = setting.data?.all_roles ?? false;
  return (
    <Section title="Session tokens of workspaces" description={LIMITS}>
      {setting.isPending ? <SkeletonRows rows={1} /> : null}
      {setting.isError ? (
        <Failure error={setting.error} retry={() => void setting.refetch()} />
      ) : null}
      {setting.data ? (
        <Stack>
          <Switch
            label="Give tokens all roles of the workspace’s owner"
            hint={EXPOSES}
            checked={isOn}
            disabled={!isOn && !may.editDeploymentConfig}
            onChange={(on) => void save(on)}
          />
          {isOn || may.editDeploymentConfig || !may.known ? null : (
            <p className="text-sm text-muted">Only owners of the deployment can turn this on.</p>
          )}
        </Stack>
      ) : null}
    </Section>
  );
}
