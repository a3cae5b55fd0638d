// Prebuilt workspaces: the presets that request them, and rebuilding them.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Timer } from "lucide-react";
import { useState } from "react";

import { post } from "../../api/client";
import { versionPresets } from "../../api/queries/templates";
import { workspaces } from "../../api/queries/workspaces";
import { Button, ButtonLink } from "../../ui/Button";
import { Card, Section } from "../../ui/Card";
import { Confirm } from "../../ui/Confirm";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { SkeletonRows } from "../../ui/Loading";
import { Stack } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { useTemplateContext } from "./TemplateLayout";

export function PrebuildsPage() {
  const { template, version, may } = useTemplateContext();
  useTitle(template.name, "Prebuilds");
  const queries = useQueryClient();
  const presets = useQuery(versionPresets(version.id));
  const query = `owner:prebuilds template:${template.name} organization:${template.organization_name}`;
  const list = useQuery({ ...workspaces(query, 1), retry: false });
  const ready = list.data;
  const [confirming, setConfirming] = useState(false);
  if (presets.isPending) return <SkeletonRows rows={2} />;
  if (presets.isLoadingError)
    return <Failure error={presets.error} retry={() => void presets.refetch()} />;
  const prebuiltPresets = presets.data.filter(
    (preset) => (preset.DesiredPrebuildInstances ?? 0) > 0,
  );
  if (prebuiltPresets.length === 0)
    return (
      <Card>
        <Empty icon={Timer} title="No prebuilt workspaces">
          Presets can keep workspaces ready to claim. Add{" "}
          <code className="whitespace-nowrap">
            prebuilds {"{"} instances = 2 {"}"}
          </code>{" "}
          to a <code>coder_workspace_preset</code>.
        </Empty>
      </Card>
    );
  return (
    <Stack>
      <Section
        title="Prebuilt workspaces"
        description={
          ready === undefined
            ? list.isLoadingError
              ? "It is unknown how many are ready to claim."
              : " "
            : ready.count === 0
              ? "None ready to claim."
              : `${ready.count} ready to claim.`
        }
        actions={
          <>
            <ButtonLink to={`/workspaces?filter=${encodeURIComponent(query)}`}>
              View prebuilds
            </ButtonLink>
            {may.update ? (
              <Button onClick={() => setConfirming(true)}>Invalidate prebuilds…</Button>
            ) : null}
          </>
        }
      >
        <ul className="divide-y divide-line">
          {prebuiltPresets.map((preset) => (
            <li key={preset.ID} className="flex items-center justify-between gap-4 py-2">
              <span>
                <span className="font-medium">{preset.Name}</span>{" "}
                <span className="text-sm text-muted">{preset.Description}</span>
              </span>
              <span className="text-muted">{preset.DesiredPrebuildInstances} desired</span>
            </li>
          ))}
        </ul>
      </Section>
      <Confirm
        open={confirming}
        onClose={() => setConfirming(false)}
        title="Invalidate prebuilt workspaces?"
        confirm="Invalidate"
        onConfirm={async () => {
          await post(`/api/v2/templates/${template.id}/prebuilds/invalidate`);
          toast.done("Prebuilt workspaces are being rebuilt.");
          await queries.invalidateQueries({ queryKey: ["workspaces"] });
        }}
      >
        Unclaimed prebuilt workspaces are deleted and rebuilt, for example after an image change.
        Until then, new workspaces take the usual time. Claimed workspaces are not affected.
      </Confirm>
    </Stack>
  );
}
