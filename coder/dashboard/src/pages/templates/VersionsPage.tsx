// The versions of a template, newest first; one is active.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "react-router";

import { patch, post, seg } from "../../api/client";
import { templateRollouts, templateVersions } from "../../api/queries/templates";
import type { TemplateVersion } from "../../api/types";
import { Ago } from "../../ui/Ago";
import { Avatar } from "../../ui/Avatar";
import { StatusText, Tag } from "../../ui/Badge";
import { Button } from "../../ui/Button";
import { Confirm } from "../../ui/Confirm";
import { Failure } from "../../ui/Failure";
import { SkeletonRows } from "../../ui/Loading";
import { Stack } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { JOB_TONES, JOB_WORDS, stateOf } from "../../features/provisioner/job-states";
import { templatePath } from "../../features/template/paths";
import { RolloutCard } from "./rollout/RolloutCard";
import { isOpen } from "./rollout/rollout";
import { StartRollout } from "./rollout/StartRollout";
import { TemplatePreview } from "../../features/workspace/preview/TemplatePreview";
import { useTemplateContext } from "./TemplateLayout";

export function VersionsPage() {
  const { template, may } = useTemplateContext();
  useTitle(`${template.name} · Versions`);
  const queries = useQueryClient();
  const list = useQuery(templateVersions(template.id));
  const rollouts = useQuery({
    ...templateRollouts(template.id),
    enabled: may.update === true,
  }).data;
  const [starting, setStarting] = useState<TemplateVersion | null>(null);
  const [confirming, setConfirming] = useState<{
    version: TemplateVersion;
    action: "promote" | "archive";
  } | null>(null);
  if (list.isPending) return <SkeletonRows />;
  if (list.isLoadingError) return <Failure error={list.error} retry={() => void list.refetch()} />;
  const home = templatePath(template);
  const open = rollouts?.find(isOpen);
  const [newest] = list.data;
  const refresh = () =>
    Promise.all([
      queries.invalidateQueries({ queryKey: ["template"] }),
      queries.invalidateQueries({ queryKey: ["templates"] }),
    ]);
  const archive = (version: TemplateVersion, on: boolean) =>
    post(`/api/v2/templateversions/${version.id}/${on ? "archive" : "unarchive"}`).then(refresh);
  return (
    <Stack>
      {may.update ? <RolloutCard template={template} /> : null}
      <ol
        aria-label="Versions"
        className="divide-y divide-line rounded-xl border border-line bg-surface shadow-card"
      >
        {list.data.map((version) => {
          const active = version.id === template.active_version_id;
          return (
            <li
              key={version.id}
              data-testid={`version-${version.name}`}
              className="flex flex-wrap items-center gap-x-4 gap-y-2 px-4 py-3"
            >
              <Avatar
                name={version.created_by.username}
                src={version.created_by.avatar_url}
                size="sm"
              />
              <div className="min-w-0 flex-1 basis-56">
                <p className="flex flex-wrap items-center gap-2">
                  {may.update ? (
                    <Link
                      to={`${home}/versions/${seg(version.name)}`}
                      className="font-medium hover:underline"
                    >
                      {version.name}
                    </Link>
                  ) : (
                    <span className="font-medium">{version.name}</span>
                  )}
                  {active ? <Tag tone="good">Active</Tag> : null}
                  {version.id === newest?.id ? <Tag tone="accent">Newest</Tag> : null}
                  {version.archived ? <Tag>Archived</Tag> : null}
                  {version.id === open?.template_version_id ? (
                    <Tag tone="busy">Rolling out</Tag>
                  ) : null}
                </p>
                <p className="text-sm text-muted">
                  {version.created_by.username}, <Ago at={version.created_at} />
                  {version.message ? <>: {version.message}</> : null}
                </p>
              </div>
              {version.job.status === "succeeded" ? null : (
                <StatusText
                  tone={JOB_TONES[stateOf(version.job)]}
                  pulse={version.job.status === "running"}
                >
                  {JOB_WORDS[stateOf(version.job)]}
                </StatusText>
              )}
              {may.update && !active ? (
                <div className="flex gap-2">
                  {version.archived ? (
                    <Button size="sm" onClick={() => void archive(version, false)}>
                      Unarchive
                    </Button>
                  ) : (
                    <Button
                      size="sm"
                      variant="quiet"
                      onClick={() => setConfirming({ version, action: "archive" })}
                    >
                      Archive…
                    </Button>
                  )}
                  {version.job.status === "succeeded" && !version.archived && rollouts && !open ? (
                    <Button size="sm" onClick={() => setStarting(version)}>
                      Roll out…
                    </Button>
                  ) : null}
                  {version.job.status === "succeeded" && !version.archived ? (
                    <Button
                      size="sm"
                      data-testid="promote"
                      onClick={() => setConfirming({ version, action: "promote" })}
                    >
                      Promote…
                    </Button>
                  ) : null}
                </div>
              ) : null}
            </li>
          );
        })}
      </ol>
      <Confirm
        open={confirming?.action === "promote"}
        onClose={() => setConfirming(null)}
        danger={false}
        title={`Promote ${confirming?.version.name}?`}
        confirm="Promote"
        onConfirm={async () => {
          if (confirming)
            await patch(`/api/v2/templates/${template.id}/versions`, { id: confirming.version.id });
          await refresh();
          toast.done("Version promoted successfully.");
        }}
      >
        <p>
          New workspaces use this version; existing ones are marked outdated until they are updated.
        </p>
        {open ? <p>The rollout of {open.template_version_name} ends.</p> : null}
        {confirming?.action === "promote" ? (
          <TemplatePreview template={template} version={confirming.version.id} />
        ) : null}
      </Confirm>
      {starting ? (
        <StartRollout
          template={template}
          version={starting}
          onClose={() => setStarting(null)}
          onStarted={refresh}
        />
      ) : null}
      <Confirm
        open={confirming?.action === "archive"}
        onClose={() => setConfirming(null)}
        danger={false}
        title={`Archive ${confirming?.version.name}?`}
        confirm="Archive"
        onConfirm={async () => {
          if (confirming) await archive(confirming.version, true);
        }}
      >
        No new workspaces can be created from this version until it is unarchived. Nothing is
        deleted.
      </Confirm>
    </Stack>
  );
}
