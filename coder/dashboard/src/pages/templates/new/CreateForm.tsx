// The form of a new template: imports its files and creates the template after the import.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Ban } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { Link, useBlocker, useNavigate } from "react-router";

import { patch, post } from "../../../api/client";
import { createChecksOf, useCreationIn } from "../../../api/permissions";
import { organizations } from "../../../api/queries/session";
import { versionVariables } from "../../../api/queries/templates";
import type {
  CreateTemplateVersionRequest,
  Organization,
  Template,
  TemplateVersion,
} from "../../../api/types";
import { Avatar } from "../../../ui/Avatar";
import { Button, ButtonLink } from "../../../ui/Button";
import { Section } from "../../../ui/Card";
import { Confirm } from "../../../ui/Confirm";
import { Failure } from "../../../ui/Failure";
import { Checkbox } from "../../../ui/forms/Toggle";
import { SelectField, TextArea, TextField } from "../../../ui/forms/Field";
import { useForm } from "../../../ui/forms/form";
import { IconField } from "../../../ui/forms/IconField";
import { RequiredLabel } from "../../../ui/forms/RequiredLabel";
import { Notice } from "../../../ui/Notice";
import { Narrow, PageHead, Stack } from "../../../ui/Page";
import { toast } from "../../../ui/toast";
import { stateOf } from "../../../features/provisioner/job-states";
import { WaitingNotice } from "../../../features/provisioner/WaitingNotice";
import { FirstImportErrors } from "../../../features/build/FirstErrors";
import { createVersion, waitForImport } from "../archive";
import { ImportLog } from "../ImportLog";
import { templatePath } from "../../../features/template/paths";
import { TagEditor, type ProvisionerTags } from "../TagEditor";
import { givenValues, startValues, VariablesForm } from "../VariablesForm";
import { ArchiveFile } from "./ArchiveFile";
import type { Source } from "./source";

/** `then`: the page of the new template that is opened afterwards. */
export function CreateForm({
  source,
  provisioner,
  then,
}: {
  source: Source;
  provisioner: CreateTemplateVersionRequest["provisioner"];
  then: "files" | "workspace";
}) {
  const navigate = useNavigate();
  const queries = useQueryClient();
  const all = useQuery(organizations).data ?? [];
  const making =
    useCreationIn(
      "templates",
      all.map((org) => org.id),
    ) ?? [];
  const orgs = all.filter((org) => making.includes(org.id));
  // A copy stays in its template's organization, any other template goes to the default one; neither
  // if creating there is not allowed.
  const firstOf = (choices: readonly Organization[]) =>
    (
      choices.find((org) => org.id === source.organization) ??
      choices.find((org) => org.is_default) ??
      choices[0]
    )?.id;
  const [version, setVersion] = useState<TemplateVersion | null>(null);
  const abandoned = useRef(false);
  const [values, setValues] = useState<Record<string, string>>({});
  const [tags, setTags] = useState<ProvisionerTags>(source.tags ?? {});
  const missing = version?.job.error_code === "REQUIRED_TEMPLATE_VARIABLES";
  const variables =
    useQuery({ ...versionVariables(version?.id ?? ""), enabled: missing }).data ?? [];
  const start = {
    organization: "",
    name: source.name,
    display_name: source.display,
    description: source.description,
    icon: source.icon,
    everyone: true,
  };
  const form = useForm(start, async (form_values) => {
    // A quick user does not create the template in another organization than the one the page was about
    // to select.
    const organizationList = await queries.ensureQueryData(organizations);
    const rights = await queries.ensureQueryData(
      createChecksOf(
        "templates",
        organizationList.map((org) => org.id),
      ),
    );
    const organization =
      form_values.organization ||
      firstOf(organizationList.filter((org) => rights[org.id] === true)) ||
      "default";
    const newVersion = await createVersion(organization, {
      ...source.body,
      provisioner,
      tags,
      user_variable_values: givenValues(values),
    });
    setVersion(newVersion);
    const done = await waitForImport(newVersion.id, setVersion);
    setVersion(done);
    if (abandoned.current) return; // the user was told that leaving creates no template
    if (stateOf(done.job) === "canceled")
      throw new Error("The import was canceled. No template was created.");
    if (done.job.status !== "succeeded") {
      if (done.job.error_code === "REQUIRED_TEMPLATE_VARIABLES") return;
      throw new Error(done.job.error || "The template could not be imported.");
    }
    const template = await post<Template>(`/api/v2/organizations/${organization}/templates`, {
      name: form_values.name,
      display_name: form_values.display_name,
      description: form_values.description,
      icon: form_values.icon,
      template_version_id: done.id,
      disable_everyone_group_access: !form_values.everyone,
      require_active_version: false,
      allow_user_cancel_workspace_jobs: true,
      max_port_share_level: null,
      cors_behavior: null,
    });
    abandoned.current = true;
    await queries.invalidateQueries({ queryKey: ["templates"] });
    toast.done(`Template "${form_values.name}" created successfully.`);
    await navigate(
      `${all.length > 1 ? templatePath(template) : `/templates/${template.name}`}/${then}`,
    );
  });
  const leaving = useBlocker(
    ({ currentLocation: from, nextLocation: to }) =>
      form.busy && !abandoned.current && from.pathname + from.search !== to.pathname + to.search,
  );
  useEffect(() => {
    if (!form.busy) return;
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", warn);
    return () => window.removeEventListener("beforeunload", warn);
  }, [form.busy]);
  const log = useRef<HTMLDivElement>(null);
  // The examples have the same path and are a long page: scroll to the top, as a page of its own
  // would start there.
  useEffect(() => {
    window.scrollTo(0, 0);
  }, []);
  useEffect(() => {
    if (version?.id) log.current?.scrollIntoView({ block: "nearest" });
  }, [version?.id]);
  const cancel = async () => {
    if (version) await patch(`/api/v2/templateversions/${version.id}/cancel`);
  };
  const currentValues =
    variables.length > 0 && Object.keys(values).length === 0 ? startValues(variables) : values;
  return (
    <Narrow>
      <PageHead
        title="Create template"
        crumbs={[["Templates", "/templates"], ["New template", "/templates/new"], [source.title]]}
        description={source.title}
        icon={<Avatar name={source.name} src={form.values.icon} size="lg" square />}
      />
      <form onSubmit={form.submit}>
        <Stack>
          {form.error && version && stateOf(version.job) === "failed" ? (
            <Notice kind="error" title="The template could not be imported">
              <p>{version.job.error}</p>
              <FirstImportErrors key={version.id} version={version.id} />
            </Notice>
          ) : form.error ? (
            <Failure error={form.error} />
          ) : null}
          <Section title="General">
            <Stack>
              {source.archive ? <ArchiveFile {...source.archive} disabled={form.busy} /> : null}
              {all.length > 1 ? (
                <SelectField
                  label="Organization"
                  value={form.values.organization || (firstOf(orgs) ?? "")}
                  onChange={(value) => form.set("organization", value)}
                  options={orgs.map((org) => [org.id, org.display_name || org.name] as const)}
                />
              ) : null}
              <TextField
                label={<RequiredLabel>Name</RequiredLabel>}
                aria-required
                hint="Used in URLs and by the CLI."
                value={form.values.name}
                problem={form.problem("name")}
                maxLength={32}
                onChange={(value) => form.set("name", value)}
              />
              <TextField
                label="Display name"
                value={form.values.display_name}
                problem={form.problem("display_name")}
                onChange={(value) => form.set("display_name", value)}
              />
              <TextArea
                label="Description"
                rows={2}
                value={form.values.description}
                problem={form.problem("description")}
                onChange={(value) => form.set("description", value)}
              />
              <IconField
                value={form.values.icon}
                problem={form.problem("icon")}
                onChange={(value) => form.set("icon", value)}
              />
              <Checkbox
                label="Everyone in the organization can use this template"
                checked={form.values.everyone}
                onChange={(on) => form.set("everyone", on)}
              />
            </Stack>
          </Section>
          {missing ? (
            <Section title="Variables" description="The import requires these values.">
              <Notice kind="warning" title="Some variables need a value" />
              <div className="mt-4">
                <VariablesForm
                  variables={variables}
                  values={currentValues}
                  onChange={(name, value) => setValues({ ...currentValues, [name]: value })}
                />
              </div>
            </Section>
          ) : null}
          {version?.job.status === "pending" ? (
            <WaitingNotice organization={version.organization_id ?? ""} job={version.job} staying />
          ) : null}
          {version ? (
            <div ref={log} className="scroll-mb-24">
              <ImportLog key={version.id} version={version.id} />
            </div>
          ) : null}
          <div className="flex flex-wrap justify-end gap-2">
            <span className="mr-auto">
              <TagEditor tags={tags} onChange={setTags} />
            </span>
            <div className="ml-auto flex gap-2">
              {form.busy && version ? (
                <Button
                  icon={<Ban />}
                  onClick={() =>
                    void cancel().catch((error: unknown) =>
                      toast.failed("Failed to cancel the import", error),
                    )
                  }
                >
                  Cancel import
                </Button>
              ) : source.back ? (
                <Button disabled={form.busy} onClick={source.back.onBack}>
                  {source.back.text}
                </Button>
              ) : (
                <ButtonLink to="/templates/new">Cancel</ButtonLink>
              )}
              <Button type="submit" variant="primary" busy={form.busy} data-testid="create">
                Create template
              </Button>
            </div>
          </div>
        </Stack>
      </form>
      <Confirm
        open={leaving.state === "blocked"}
        onClose={() => leaving.reset?.()}
        title="Leave before the template is created?"
        confirm="Cancel import"
        onConfirm={async () => {
          abandoned.current = true;
          await cancel().catch(() => undefined); // it may have ended meanwhile
          leaving.proceed?.();
        }}
      >
        The import is still running; this page creates the template when it is done. Leaving cancels
        the import.
      </Confirm>
      <p className="mt-4 text-sm text-muted">
        You can set schedule and permissions later in <em>Settings</em>.{" "}
        <Link to="/templates" className="underline">
          All templates
        </Link>
      </p>
    </Narrow>
  );
}
