// Workspaces built ahead: the presets that want some, and building them anew.
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
import { plural } from "../../lib/words";

export function PrebuildsPage() {
  const { template, version, may } = useTemplateContext();
  useTitle(template.name, "Prebuilds");
  const queries = useQueryClient();
  const presets = useQuery(versionPresets(version.id));
  const query = `owner:prebuilds template:${template.name}`;
  const ready = useQuery({ ...workspaces(query, 1), retry: false }).data;
  const [asking, setAsking] = useState(false);
  if (presets.isPending) return <SkeletonRows rows={2} />;
  if (presets.isLoadingError)
    return <Failure error={presets.error} retry={() => void presets.refetch()} />;
  const wanted = presets.data.filter((preset) => (preset.DesiredPrebuildInstances ?? 0) > 0);
  if (wanted.length === 0)
    return (
      <Card>
        <Empty icon={Timer} title="Nothing is built ahead">
          A preset of the template can ask for workspaces that are ready before anybody wants them:{" "}
          <code className="whitespace-nowrap">
            prebuilds {"{"} instances = 2 {"}"}
          </code>{" "}
          in its <code>coder_workspace_preset</code>.
        </Empty>
      </Card>
    );
  return (
    <Stack>
      <Section
        title="Built ahead"
        description={
          ready === undefined
            ? " "
            : ready.count === 0
              ? "None waits to be claimed."
              : `${ready.count} ${plural(ready.count, "waits", "wait")} to be claimed.`
        }
        actions={
          <>
            <ButtonLink to={`/workspaces?filter=${encodeURIComponent(query)}`}>
              Show them
            </ButtonLink>
            {may.update ? (
              <Button onClick={() => setAsking(true)}>Invalidate prebuilds…</Button>
            ) : null}
          </>
        }
      >
        <ul className="divide-y divide-line">
          {wanted.map((preset) => (
            <li key={preset.ID} className="flex items-center justify-between gap-4 py-2">
              <span>
                <span className="font-medium">{preset.Name}</span>{" "}
                <span className="text-sm text-muted">{preset.Description}</span>
              </span>
              <span className="text-muted">{preset.DesiredPrebuildInstances} wanted</span>
            </li>
          ))}
        </ul>
      </Section>
      <Confirm
        open={asking}
        onClose={() => setAsking(false)}
        title="Invalidate the prebuilt workspaces?"
        confirm="Invalidate"
        onConfirm={async () => {
          await post(`/api/v2/templates/${template.id}/prebuilds/invalidate`);
          toast.done("They are being built anew.");
          await queries.invalidateQueries({ queryKey: ["workspaces"] });
        }}
      >
        Those that wait are deleted and built again, for example because an image has changed. Until
        then new workspaces take as long as usual. Claimed ones are not touched.
      </Confirm>
    </Stack>
  );
}
