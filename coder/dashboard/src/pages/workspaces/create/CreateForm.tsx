// The form of a new workspace: name, owner, version, external accounts, preset, parameters.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useNavigate, useSearchParams } from "react-router";

import { useMe } from "../../../features/session/useMe";
import { post } from "../../../api/client";
import { useWorkspaceOwners } from "../../../api/permissions";
import { versionPresets } from "../../../api/queries/templates";
import { workspaces } from "../../../api/queries/workspaces";
import type { Preset, Template, Workspace } from "../../../api/types";
import { Avatar } from "../../../ui/Avatar";
import { Button, ButtonLink } from "../../../ui/Button";
import { Section } from "../../../ui/Card";
import { Failure } from "../../../ui/Failure";
import { TextField } from "../../../ui/forms/Field";
import { useForm } from "../../../ui/forms/form";
import { SkeletonRows } from "../../../ui/Loading";
import { Notice } from "../../../ui/Notice";
import { Narrow, PageHead, Stack } from "../../../ui/Page";
import { templatePath } from "../../../features/template/paths";
import { type InitialValues } from "./initial-values";
import {
  buildValues,
  FIX_PARAMETERS,
  hasErrors,
  useDynamicParameters,
} from "../../../features/parameter/dynamic-parameters";
import {
  ExternalAuthStep,
  missingLinks,
  useExternalAuth,
} from "../../../features/template/ExternalAuthStep";
import { suggestName } from "./names";
import { linkName, lockedNames } from "../../../features/parameter/link-names";
import { ParameterField } from "../../../features/parameter/ParameterField";
import { OwnerField, type Owner } from "./OwnerField";
import { VersionField } from "./VersionField";
import { workspacePath } from "../paths";
import { Presets } from "./Presets";
import { AutoCreate } from "./AutoCreate";

export function CreateForm({
  template,
  start,
}: {
  template: Template;
  start: Record<string, string>;
}) {
  const me = useMe();
  const may = useWorkspaceOwners(template.organization_id);
  const navigate = useNavigate();
  const [params] = useSearchParams();
  const [owner, setOwner] = useState<Owner>(me);
  const [version, setVersion] = useState(params.get("version") ?? template.active_version_id);
  const [preset, setPreset] = useState<Preset | null>(null);
  const [skippedPreset, setSkippedPreset] = useState<InitialValues["skipped"]>(null);
  const [own, setOwn] = useState(start); // values that no preset has set
  const locked = useMemo(() => lockedNames(params.get("disable_params") ?? ""), [params]);
  const dynamic = useDynamicParameters(version, owner.id, start);
  // A default preset that loads after the user has typed would overwrite the input, and one that
  // loads after "Create" would be ignored.
  const presets = useQuery(versionPresets(version));
  const ready = dynamic.parameters !== null && !presets.isPending;
  const linked = owner.id === me.id ? null : owner.username;
  const { missing } = useExternalAuth(version, linked === null ? "me" : owner.id);
  const create = async (name: string) => {
    const created = await post<Workspace>(`/api/v2/users/${owner.id}/workspaces`, {
      name,
      ...(version === template.active_version_id
        ? { template_id: template.id }
        : { template_version_id: version }),
      ...(preset ? { template_version_preset_id: preset.ID } : {}),
      rich_parameter_values: buildValues(dynamic),
    });
    await navigate(`/@${created.owner_name}/${created.name}`);
  };
  const form = useForm({ name: params.get("name") ?? "" }, ({ name }) => create(name));
  const [suggestion, suggest] = useState(suggestName);
  const auto = params.get("mode") === "auto";
  const match = params.get("match") ?? "";
  const existing = useQuery({
    ...workspaces(match, 1, 1),
    enabled: auto && match !== "",
    refetchInterval: false,
    retry: false,
  });
  const [confirming, setConfirming] = useState(auto);
  const ownerProblem =
    !may.self && owner.id === me.id
      ? "Choose an owner. You cannot have workspaces of your own in this organization."
      : "";
  const blocked =
    ownerProblem ||
    (missing.length > 0 ? missingLinks(missing, linked) : hasErrors(dynamic) ? FIX_PARAMETERS : "");
  const openOrCreate = async () => {
    const result = match === "" ? null : (await existing.refetch()).data;
    if (result === undefined) return; // the reason stands above the form
    const workspace = result?.workspaces[0];
    if (workspace) await navigate(workspacePath(workspace), { replace: true });
    else if (blocked === "") await create(form.values.name || suggestion);
  };
  const preset_names = new Set(preset?.Parameters.map((item) => item.Name));
  const shown = dynamic.parameters ?? [];
  return (
    <Narrow>
      <PageHead
        title="New workspace"
        icon={<Avatar name={template.name} src={template.icon} size="lg" square />}
        crumbs={[
          ["Templates", "/templates"],
          [template.display_name || template.name, templatePath(template)],
          ["New workspace"],
        ]}
        description={template.description || template.display_name || template.name}
      />
      <form onSubmit={form.submit}>
        <Stack>
          {form.error ? <Failure error={form.error} /> : null}
          {existing.isLoadingError ? (
            <Failure
              title={
                <span role="heading" aria-level={2}>
                  Invalid match value
                </span>
              }
              error={existing.error}
            />
          ) : null}
          <Section
            title="General"
            description="The name must be unique among the owner’s workspaces."
          >
            <Stack>
              <div className="flex flex-col gap-1.5">
                <TextField
                  label="Workspace name"
                  name="name"
                  required
                  value={form.values.name}
                  problem={form.problem("name")}
                  autoComplete="off"
                  spellCheck={false}
                  maxLength={32}
                  autoFocus={!auto}
                  onChange={(value) => form.set("name", value)}
                />
                <div className="text-sm text-muted">
                  Need a suggestion?{" "}
                  <button
                    type="button"
                    className="font-medium text-accent-text hover:underline"
                    onClick={() => {
                      form.set("name", suggestion);
                      suggest(suggestName());
                    }}
                  >
                    {suggestion}
                  </button>
                </div>
              </div>
              {may.others ? <OwnerField value={owner} onChange={setOwner} /> : null}
              <VersionField
                template={template}
                value={version}
                onChange={(next) => {
                  setVersion(next);
                  setPreset(null);
                  setSkippedPreset(null);
                }}
              />
            </Stack>
          </Section>
          <ExternalAuthStep
            version={version}
            user={linked === null ? "me" : owner.id}
            name={linked}
          />
          {presets.isLoadingError ? (
            <Failure
              title="Failed to load the template’s presets"
              error={presets.error}
              retry={() => void presets.refetch()}
            />
          ) : null}
          <Presets
            version={version}
            presets={presets.data}
            chosen={preset}
            name={params.get("preset") ?? ""}
            own={own}
            locked={locked}
            skipped={skippedPreset}
            onChoose={(next) => {
              setPreset(next.preset);
              setSkippedPreset(next.skipped);
              if (Object.keys(next.values).length > 0) dynamic.choose(next.values);
            }}
          />
          {!ready ? (
            <SkeletonRows rows={2} />
          ) : shown.length === 0 && dynamic.diagnostics.length === 0 ? null : (
            <Section title="Parameters" description="Options may change depending on your choices.">
              <Stack className="gap-6">
                {dynamic.diagnostics.map((item, index) => (
                  <Notice
                    key={index}
                    kind={item.severity === "error" ? "error" : "warning"}
                    title={item.summary}
                  >
                    {item.detail}
                  </Notice>
                ))}
                {shown.map((parameter) => (
                  <ParameterField
                    key={parameter.name}
                    parameter={parameter}
                    value={dynamic.valueOf(parameter)}
                    onChange={(value) => {
                      setOwn((old) => ({ ...old, [parameter.name]: value }));
                      dynamic.choose({ [parameter.name]: value });
                    }}
                    locked={
                      locked.has(linkName(parameter.name))
                        ? "Set by the link you opened."
                        : preset_names.has(parameter.name)
                          ? "Set by the preset."
                          : ""
                    }
                    fromPreset={preset_names.has(parameter.name)}
                  />
                ))}
              </Stack>
            </Section>
          )}
          <p className="text-sm text-muted">
            Authors of this template and administrators of its organization choose the programs that
            run in the workspace. These can act for its owner, without site roles, and read the
            owner’s SSH key, secrets and provider tokens.
          </p>
          <div className="flex flex-wrap items-center justify-end gap-2">
            {blocked ? (
              <p id="create-blocked" className="mr-auto text-sm text-muted">
                {blocked}
              </p>
            ) : null}
            <div className="ml-auto flex gap-2">
              <ButtonLink to="/workspaces">Cancel</ButtonLink>
              <Button
                type="submit"
                variant="primary"
                data-testid="create"
                busy={form.busy}
                disabled={blocked !== "" || !ready}
                aria-describedby={blocked ? "create-blocked" : undefined}
              >
                Create workspace
              </Button>
            </div>
          </div>
        </Stack>
      </form>
      <AutoCreate
        open={confirming && ready && (blocked === "" || match !== "")}
        template={template}
        name={form.values.name || suggestion}
        match={match}
        preset={preset}
        dynamic={dynamic}
        onClose={() => setConfirming(false)}
        onConfirm={openOrCreate}
      />
    </Narrow>
  );
}
