// A new workspace: name, version, owner, preset, parameters. Everything can be given by the address, and with `mode=auto`
// it is created after one question.
import { useQuery } from "@tanstack/react-query";
import { LockKeyhole } from "lucide-react";
import { useEffect, useMemo, useState } from "react";
import { Navigate, useNavigate, useSearchParams } from "react-router";

import { useMe } from "../../../features/session/useMe";
import { get, post, withQuery } from "../../../api/client";
import {
  NO_WORKSPACES,
  useMayCreateWorkspace,
  useTemplateRights,
  useWorkspaceOwners,
} from "../../../api/permissions";
import { templateVersions, versionPresets } from "../../../api/queries/templates";
import { buildParameters, workspaces } from "../../../api/queries/workspaces";
import type {
  GetUsersResponse,
  Preset,
  PreviewParameter,
  Template,
  User,
  Workspace,
} from "../../../api/types";
import { Avatar } from "../../../ui/Avatar";
import { Tag } from "../../../ui/Badge";
import { Button, ButtonLink } from "../../../ui/Button";
import { Section } from "../../../ui/Card";
import { Combobox } from "../../../ui/forms/Combobox";
import { Confirm } from "../../../ui/Confirm";
import { Empty } from "../../../ui/Empty";
import { Failure } from "../../../ui/Failure";
import { RadioCards, SelectField, TextField } from "../../../ui/forms/Field";
import { useForm } from "../../../ui/forms/form";
import { Loading, SkeletonRows } from "../../../ui/Loading";
import { Notice } from "../../../ui/Notice";
import { Narrow, PageHead, Stack } from "../../../ui/Page";
import { useTitle } from "../../../ui/title";
import { templatePath } from "../../../features/template/paths";
import { useTemplate } from "../../../features/template/useTemplate";
import { beginning, changedBy, presetValues, type Beginning } from "./begin";
import {
  buildValues,
  hasErrors,
  useDynamicParameters,
  type DynamicParameters,
} from "../../../features/parameter/dynamic-parameters";
import {
  ExternalAuthStep,
  missingLinks,
  useExternalAuth,
} from "../../../features/template/ExternalAuthStep";
import { suggestName } from "./names";
import { ParameterField } from "../../../features/parameter/ParameterField";

export function CreateWorkspacePage() {
  useTitle("Create workspace");
  const { template, view } = useTemplate();
  const [params] = useSearchParams();
  const match = params.get("match");
  const mayCreate = useMayCreateWorkspace(template?.organization_id);
  const existing = useQuery({
    ...workspaces(match ?? "", 1, 1),
    enabled: params.get("mode") === "auto" && Boolean(match),
    refetchInterval: false,
  });
  if (!template) return view;
  if (match && params.get("mode") === "auto") {
    if (existing.isPending) return <Loading />;
    if (existing.isLoadingError)
      return (
        <Narrow>
          <PageHead
            title="New workspace"
            crumbs={[
              ["Templates", "/templates"],
              [template.display_name || template.name, templatePath(template)],
              ["New workspace"],
            ]}
          />
          <Failure
            error={existing.error}
            title="Invalid match value"
            retry={() => void existing.refetch()}
          />
        </Narrow>
      );
    const found = existing.data?.workspaces[0];
    if (found) return <Navigate to={`/@${found.owner_name}/${found.name}`} replace />;
  }
  if (mayCreate === false) {
    return (
      <Empty
        level={1}
        icon={LockKeyhole}
        title={NO_WORKSPACES}
        actions={<ButtonLink to={templatePath(template)}>Back to the template</ButtonLink>}
      >
        Somebody who administers the organization can give you the right.
      </Empty>
    );
  }
  if (template.deprecated) {
    return (
      <Narrow>
        <PageHead
          title="New workspace"
          crumbs={[
            ["Templates", "/templates"],
            [template.display_name || template.name, templatePath(template)],
            ["New workspace"],
          ]}
        />
        <Notice kind="warning" title={`${template.display_name || template.name} is deprecated`}>
          {template.deprecation_message}
        </Notice>
      </Narrow>
    );
  }
  return <Prepared template={template} />;
}

/** A duplicate begins with the values of the other. */
function Prepared({ template }: { template: Template }) {
  const [params] = useSearchParams();
  const like = params.get("like");
  const values = useQuery({ ...buildParameters(like ?? ""), enabled: like !== null });
  if (like !== null && values.isPending) return <SkeletonRows rows={3} />;
  // Without them it would not be a duplicate, and nobody would see that it is none.
  if (like !== null && values.isLoadingError)
    return (
      <Failure
        title="The values of the other workspace could not be read"
        error={values.error}
        retry={() => void values.refetch()}
      />
    );
  const copied = Object.fromEntries((values.data ?? []).map((item) => [item.name, item.value]));
  return <CreateForm template={template} start={{ ...copied, ...fromAddress(params) }} />;
}

function fromAddress(params: URLSearchParams): Record<string, string> {
  return Object.fromEntries(
    [...params]
      .filter(([name]) => name.startsWith("param."))
      .map(([name, value]) => [name.slice("param.".length), value]),
  );
}

function CreateForm({ template, start }: { template: Template; start: Record<string, string> }) {
  const me = useMe();
  const may = useWorkspaceOwners(template.organization_id);
  const navigate = useNavigate();
  const [params] = useSearchParams();
  const [owner, setOwner] = useState<Owner>(me);
  const [version, setVersion] = useState(params.get("version") ?? template.active_version_id);
  const [preset, setPreset] = useState<Preset | null>(null);
  const [left, setLeft] = useState<Beginning["left"]>(null);
  const [own, setOwn] = useState(start); // what no preset has chosen
  const locked = useMemo(
    () => new Set((params.get("disable_params") ?? "").split(",").filter(Boolean)),
    [params],
  );
  const dynamic = useDynamicParameters(version, owner.id, start);
  // A default preset that came after what somebody has typed would write over it, and one that came after "Create" be none.
  const presets = useQuery(versionPresets(version));
  const ready = dynamic.parameters !== null && !presets.isPending;
  const linked = owner.id === me.id ? null : owner.username;
  const { missing } = useExternalAuth(version, linked === null ? "me" : owner.id);
  const create = async (name: string) => {
    const made = await post<Workspace>(`/api/v2/users/${owner.id}/workspaces`, {
      name,
      ...(version === template.active_version_id
        ? { template_id: template.id }
        : { template_version_id: version }),
      ...(preset ? { template_version_preset_id: preset.ID } : {}),
      rich_parameter_values: buildValues(dynamic),
    });
    await navigate(`/@${made.owner_name}/${made.name}`);
  };
  const form = useForm({ name: params.get("name") ?? "" }, ({ name }) => create(name));
  const [suggestion, suggest] = useState(suggestName);
  const auto = params.get("mode") === "auto";
  const [asking, setAsking] = useState(auto);
  const nobody =
    !may.self && owner.id === me.id
      ? "Choose an owner: you may not have workspaces of your own here."
      : "";
  const blocked =
    nobody ||
    (missing.length > 0
      ? missingLinks(missing, linked)
      : hasErrors(dynamic)
        ? "Mend the parameters marked above."
        : "");
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
          <Section
            title="General"
            description="The name is part of its address, and cannot be that of another workspace of the same owner."
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
                  setLeft(null);
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
              title="The presets of the template could not be read"
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
            left={left}
            onChoose={(next) => {
              setPreset(next.preset);
              setLeft(next.left);
              if (Object.keys(next.values).length > 0) dynamic.choose(next.values);
            }}
          />
          {!ready ? (
            <SkeletonRows rows={2} />
          ) : shown.length === 0 && dynamic.diagnostics.length === 0 ? null : (
            <Section
              title="Parameters"
              description="What this workspace is to be. Other parameters may appear as you choose."
            >
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
                      locked.has(parameter.name)
                        ? "Set by the link you followed."
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
          <div className="flex flex-wrap items-center justify-end gap-2">
            {blocked ? (
              <p id="create-blocked" className="mr-auto text-sm text-muted">
                {blocked}
              </p>
            ) : null}
            <ButtonLink to="/workspaces">Cancel</ButtonLink>
            <Button
              type="submit"
              look="primary"
              data-testid="create"
              busy={form.busy}
              disabled={blocked !== "" || !ready}
              aria-describedby={blocked ? "create-blocked" : undefined}
            >
              Create workspace
            </Button>
          </div>
        </Stack>
      </form>
      <AutoCreate
        open={asking && ready && blocked === ""}
        template={template}
        name={form.values.name || suggestion}
        preset={preset}
        dynamic={dynamic}
        onClose={() => setAsking(false)}
        onConfirm={() => create(form.values.name || suggestion)}
      />
    </Narrow>
  );
}

interface AutoCreateProps {
  open: boolean;
  template: Template;
  name: string;
  preset: Preset | null;
  dynamic: DynamicParameters;
  onClose: () => void;
  onConfirm: () => Promise<void>;
}

// A link must not be able to spend somebody's resources by being opened. What is asked about is what is sent, whoever has
// chosen it: the link, a preset or the template.
function AutoCreate({
  open,
  template,
  name,
  preset,
  dynamic,
  onClose,
  onConfirm,
}: AutoCreateProps) {
  const shown = (parameter: PreviewParameter) => {
    const value = dynamic.valueOf(parameter);
    return parameter.styling.mask_input && value !== "" ? "••••••" : value;
  };
  const parameters = dynamic.parameters ?? [];
  return (
    <Confirm
      open={open}
      onClose={onClose}
      danger={false}
      title={`Create the workspace ${name}?`}
      confirm="Confirm and create"
      onConfirm={onConfirm}
    >
      <p>
        The link you followed creates a workspace from the template{" "}
        <strong>{template.display_name || template.name}</strong>
        {preset ? (
          <>
            {" "}
            with the preset <strong>{preset.Name}</strong>
          </>
        ) : null}
        . Go on only if you trust where it came from.
      </p>
      {parameters.length > 0 ? (
        <ul
          aria-label="Parameters"
          tabIndex={0}
          className="max-h-48 list-disc overflow-y-auto pl-5"
        >
          {parameters.map((parameter) => (
            <li key={parameter.name}>
              <code>{parameter.name}</code> = <code>{shown(parameter)}</code>
            </li>
          ))}
        </ul>
      ) : null}
    </Confirm>
  );
}

type Owner = Pick<User, "id" | "username">;

function OwnerField({ value, onChange }: { value: Owner; onChange: (owner: Owner) => void }) {
  const me = useMe();
  const [text, setText] = useState("");
  const found = useQuery({
    queryKey: ["users", "search", text],
    queryFn: () => get<GetUsersResponse>(withQuery("/api/v2/users", { q: text, limit: 25 })),
  }).data?.users ?? [me];
  const users = found.some((user) => user.id === value.id)
    ? found
    : [me, ...found.filter((user) => user.id !== me.id)];
  return (
    <Combobox
      label="Owner"
      value={value.id}
      onChange={(id) => onChange(users.find((user) => user.id === id) ?? me)}
      onSearch={setText}
      options={users.map((user) => ({
        value: user.id,
        text: user.username,
        hint: user.email,
        icon: <Avatar name={user.username} src={user.avatar_url} size="xs" />,
      }))}
    />
  );
}

function VersionField({
  template,
  value,
  onChange,
}: {
  template: Template;
  value: string;
  onChange: (id: string) => void;
}) {
  const may = useTemplateRights(template);
  const versions = useQuery({
    ...templateVersions(template.id),
    enabled: may.update === true,
  }).data;
  if (!versions || versions.length < 2) return null;
  const usable = versions.filter(
    (version) => (version.job.status === "succeeded" && !version.archived) || version.id === value,
  );
  return (
    <SelectField
      label="Version"
      value={value}
      onChange={onChange}
      options={usable.map(
        (version) =>
          [
            version.id,
            version.id === template.active_version_id ? `${version.name} (active)` : version.name,
          ] as const,
      )}
    />
  );
}

const NONE = "";

interface PresetsProps {
  version: string;
  presets: readonly Preset[] | null | undefined;
  chosen: Preset | null;
  /** The one the link asks for. */
  name: string;
  own: Readonly<Record<string, string>>;
  /** Parameters a link has set for good. */
  locked: ReadonlySet<string>;
  left: Beginning["left"];
  onChoose: (chosen: Beginning) => void;
}

function Presets({ version, presets, chosen, name, own, locked, left, onChoose }: PresetsProps) {
  const [touched, setTouched] = useState("");
  useEffect(() => {
    if (!presets || touched === version) return;
    setTouched(version);
    onChoose(beginning(presets, name, own));
  }, [presets, touched, version, name, own, onChoose]);
  if (!presets || presets.length === 0) return null;
  const press = (id: string) => {
    const preset = presets.find((item) => item.ID === id) ?? null;
    onChoose({ preset, values: preset ? presetValues(preset) : {}, left: null });
  };
  return (
    <Section title="Preset" description="Values that belong together. Others can still be changed.">
      <RadioCards
        label="Preset"
        columns
        value={chosen?.ID ?? NONE}
        onChange={press}
        options={[
          { value: NONE, text: "None", hint: "Choose everything yourself." },
          ...presets.map((item) => {
            const against = changedBy(item, own).filter((parameter) => locked.has(parameter));
            return {
              value: item.ID,
              text: (
                <>
                  {item.Name} {item.Default ? <Tag>Default</Tag> : null}{" "}
                  {(item.DesiredPrebuildInstances ?? 0) > 0 ? (
                    <Tag tone="good" title="Some are built ahead: it starts at once.">
                      Prebuilt
                    </Tag>
                  ) : null}
                </>
              ),
              hint:
                against.length > 0
                  ? `It would change ${against.join(", ")}, which the link you followed has set.`
                  : item.Description,
              disabled: against.length > 0,
              icon: item.Icon ? (
                <Avatar name={item.Name} src={item.Icon} size="sm" square />
              ) : undefined,
            };
          }),
        ]}
      />
      {left ? (
        <p role="status" className="mt-2 text-sm text-muted">
          {left.preset.Name} is not used: it would change {left.changes.join(", ")}.
        </p>
      ) : null}
    </Section>
  );
}
