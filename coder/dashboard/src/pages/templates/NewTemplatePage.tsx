// A new template: from an example, from an archive, or as a copy of another. Shows the import while it runs, and asks
// for variables that have no value.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Ban, LockKeyhole, Upload } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { Link, useBlocker, useNavigate, useSearchParams } from "react-router";

import { patch, post, upload } from "../../api/client";
import { makingOf, NO_TEMPLATES, useMakingIn, usePermissions } from "../../api/permissions";
import { organizations } from "../../api/queries/session";
import {
  templateById,
  templateExamples,
  templateVersion,
  versionVariables,
} from "../../api/queries/templates";
import type {
  CreateTemplateVersionRequest,
  Organization,
  Template,
  TemplateVersion,
  UploadResponse,
} from "../../api/types";
import { Avatar } from "../../ui/Avatar";
import { Button, ButtonLink } from "../../ui/Button";
import { Card, Section } from "../../ui/Card";
import { Confirm } from "../../ui/Confirm";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { cx } from "../../ui/cx";
import { Checkbox, SelectField, TextArea, TextField } from "../../ui/forms/Field";
import { useForm } from "../../ui/forms/form";
import { IconField } from "../../ui/forms/IconField";
import { SkeletonRows } from "../../ui/Loading";
import { Notice } from "../../ui/Notice";
import { Narrow, PageHead, Stack } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { WaitingNotice } from "../../features/provisioner/WaitingNotice";
import { FirstImportErrors } from "../../features/build/FirstErrors";
import { archiveOf, createVersion, imported, readmeOf } from "./archive";
import { frontMatter, type FrontMatter } from "./front-matter";
import { ImportLog } from "./ImportLog";
import { templatePath } from "../../features/template/paths";
import { TagEditor, type ProvisionerTags } from "./TagEditor";
import { givenValues, startValues, VariablesForm } from "./VariablesForm";

export function NewTemplatePage({ title = "Create Template" }: { title?: string }) {
  const [params] = useSearchParams();
  const example = params.get("exampleId") ?? "";
  const from = params.get("fromTemplate") ?? "";
  const provisioner = params.get("provisioner_type") === "echo" ? "echo" : "terraform"; // what a server for tests runs
  const copied = useQuery({ ...templateById(from), enabled: from !== "" });
  const copiedVersion = useQuery({
    ...templateVersion(copied.data?.active_version_id ?? ""),
    enabled: copied.data !== undefined,
  });
  const examples = useQuery({ ...templateExamples, enabled: example !== "" });
  const [file, setFile] = useState<Uploaded | null>(null);
  useTitle(title);
  const may = usePermissions();
  if (may.known && !may.createAnyTemplate)
    return (
      <Empty
        level={1}
        icon={LockKeyhole}
        title={NO_TEMPLATES}
        actions={<ButtonLink to="/templates">See the templates</ButtonLink>}
      >
        Somebody who administers the organization can give you the right.
      </Empty>
    );
  if (example === "" && from === "" && file === null) return <Gallery onFile={setFile} />;
  const failed = [copied, copiedVersion, examples].find((query) => query.isLoadingError);
  if (failed?.error)
    return (
      <Narrow>
        <PageHead
          title="Create template"
          crumbs={[
            ["Templates", "/templates"],
            ["New template", "/templates/new"],
          ]}
        />
        <Failure error={failed.error} retry={() => void failed.refetch()} />
      </Narrow>
    );
  if ((example !== "" && examples.isPending) || (from !== "" && copiedVersion.isPending))
    return <SkeletonRows />;
  const chosen = examples.data?.find((item) => item.id === example);
  const source: Source =
    copied.data && copiedVersion.data
      ? {
          body: { file_id: copiedVersion.data.job.file_id },
          name: `${copied.data.name}-copy`,
          display: copied.data.display_name ? `Copy of ${copied.data.display_name}` : "",
          description: copied.data.description,
          icon: copied.data.icon,
          title: `Copy of ${copied.data.name}`,
          organization: copied.data.organization_id,
          tags: copiedVersion.data.job.tags as ProvisionerTags,
        }
      : file
        ? {
            body: { file_id: file.hash },
            name: file.name,
            display: file.matter.display_name,
            description: file.matter.description,
            icon: file.matter.icon,
            title: "Template from an archive",
          }
        : {
            body: { example_id: example },
            name: example,
            display: chosen?.name ?? "",
            description: chosen?.description ?? "",
            icon: chosen?.icon ?? "",
            title: chosen?.name ?? example,
          };
  return (
    <CreateForm
      source={source}
      provisioner={provisioner}
      then={params.get("then") === "workspace" ? "workspace" : "files"}
    />
  );
}

interface Source {
  body: { file_id: string } | { example_id: string };
  name: string;
  display: string;
  description: string;
  icon: string;
  title: string;
  organization?: string;
  tags?: ProvisionerTags;
}

interface Uploaded {
  hash: string;
  name: string;
  matter: FrontMatter;
}

function Gallery({ onFile }: { onFile: (file: Uploaded) => void }) {
  const examples = useQuery(templateExamples);
  return (
    <>
      <PageHead
        title="Create a Template"
        crumbs={[["Templates", "/templates"], ["New template"]]}
        description="Begin with an example, or with files of your own."
      />
      <Stack className="gap-6">
        <UploadBox onFile={onFile} />
        <section aria-label="Examples">
          <h2 className="mb-3 text-lg font-semibold">Starter templates</h2>
          {examples.isPending ? <SkeletonRows /> : null}
          {examples.isError ? (
            <Failure error={examples.error} retry={() => void examples.refetch()} />
          ) : null}
          <ul className="grid grid-cols-[repeat(auto-fill,minmax(17rem,1fr))] gap-3">
            {(examples.data ?? []).map((item) => (
              <li key={item.id}>
                <Card className="flex h-full flex-col gap-3 p-4">
                  <div className="flex items-center gap-3">
                    <Avatar name={item.name} src={item.icon} size="lg" square />
                    <h3 className="font-semibold">{item.name}</h3>
                  </div>
                  <p className="flex-1 text-sm text-muted">{item.description}</p>
                  <div className="flex gap-2">
                    <ButtonLink
                      size="sm"
                      to={`/templates/new?exampleId=${item.id}`}
                      aria-label={`Use template ${item.name}`}
                    >
                      Use template
                    </ButtonLink>
                    <ButtonLink
                      size="sm"
                      look="quiet"
                      to={`/starter-templates/${item.id}`}
                      aria-label={`Read more about ${item.name}`}
                    >
                      Read more
                    </ButtonLink>
                  </div>
                </Card>
              </li>
            ))}
          </ul>
        </section>
      </Stack>
    </>
  );
}

const TYPES: ReadonlyMap<string | undefined, string> = new Map([
  ["tar", "application/x-tar"],
  ["zip", "application/zip"],
]);

function UploadBox({ onFile }: { onFile: (file: Uploaded) => void }) {
  const queries = useQueryClient();
  const input = useRef<HTMLInputElement>(null);
  const [busy, setBusy] = useState(false);
  const [over, setOver] = useState(false);
  const take = async (file: File | undefined) => {
    if (!file) return;
    const type = TYPES.get(file.name.toLowerCase().split(".").pop());
    if (!type) {
      toast.failed("Choose a .tar or .zip archive");
      return;
    }
    setBusy(true);
    try {
      const { hash } = await upload<UploadResponse>("/api/v2/files", file, type);
      // A field that begins empty is no reason to refuse an archive.
      const readme = await queries.fetchQuery(archiveOf(hash)).then(readmeOf, () => "");
      onFile({
        hash,
        matter: frontMatter(readme),
        name: file.name
          .replace(/\.(tar|zip)$/i, "")
          .toLowerCase()
          .replace(/[^a-z0-9]+/g, "-")
          .replace(/^-|-$/g, "")
          .slice(0, 32),
      });
    } catch (error) {
      toast.failed("The archive could not be uploaded", error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div
      className={cx(
        "flex flex-col items-center gap-2 rounded-xl border border-dashed px-4 py-7",
        "text-center",
        over ? "border-accent bg-accent-soft" : "border-line-strong",
      )}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        void take(event.dataTransfer.files[0]);
      }}
    >
      <Upload className="size-5 text-muted" aria-hidden="true" />
      <p>
        Drop a <strong>.tar</strong> or <strong>.zip</strong> of Terraform files here
      </p>
      <Button busy={busy} onClick={() => input.current?.click()}>
        Choose an archive
      </Button>
      <input
        ref={input}
        type="file"
        accept=".tar,.zip"
        className="sr-only"
        tabIndex={-1}
        aria-label="Archive of template files"
        data-testid="file-upload"
        onChange={(event) => void take(event.target.files?.[0])}
      />
    </div>
  );
}

/** `then`: the page of the new template that is shown when it is there. */
function CreateForm({
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
    useMakingIn(
      "templates",
      all.map((org) => org.id),
    ) ?? [];
  const orgs = all.filter((org) => making.includes(org.id));
  // A copy goes where its template is, anything else where most things are; and neither where it would be refused.
  const firstOf = (those: readonly Organization[]) =>
    (
      those.find((org) => org.id === source.organization) ??
      those.find((org) => org.is_default) ??
      those[0]
    )?.id;
  const [version, setVersion] = useState<TemplateVersion | null>(null);
  const left = useRef(false);
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
    // Whoever is quick does not make it in another organization than the one the page was about to name.
    const known = await queries.ensureQueryData(organizations);
    const rights = await queries.ensureQueryData(
      makingOf(
        "templates",
        known.map((org) => org.id),
      ),
    );
    const organization =
      form_values.organization ||
      firstOf(known.filter((org) => rights[org.id] === true)) ||
      "default";
    const made = await createVersion(organization, {
      ...source.body,
      provisioner,
      tags,
      user_variable_values: givenValues(values),
    });
    setVersion(made);
    const done = await imported(made.id, setVersion);
    setVersion(done);
    if (left.current) return; // whoever left has been told that no template is made
    if (done.job.status === "canceled")
      throw new Error("The import was canceled: no template is made.");
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
    left.current = true;
    await queries.invalidateQueries({ queryKey: ["templates"] });
    toast.done(`${form_values.display_name || form_values.name} is ready.`);
    await navigate(
      `${all.length > 1 ? templatePath(template) : `/templates/${template.name}`}/${then}`,
    );
  });
  const leaving = useBlocker(
    ({ currentLocation: from, nextLocation: to }) =>
      form.busy && !left.current && from.pathname + from.search !== to.pathname + to.search,
  );
  useEffect(() => {
    if (!form.busy) return;
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", warn);
    return () => window.removeEventListener("beforeunload", warn);
  }, [form.busy]);
  const log = useRef<HTMLDivElement>(null);
  // The examples have the same path and are a long page: the form begins at its head, as a page of its own would.
  useEffect(() => {
    window.scrollTo(0, 0);
  }, []);
  useEffect(() => {
    if (version?.id) log.current?.scrollIntoView({ block: "nearest" });
  }, [version?.id]);
  const cancel = async () => {
    if (version) await patch(`/api/v2/templateversions/${version.id}/cancel`);
  };
  const known =
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
          {form.error && version?.job.status === "failed" ? (
            <Notice kind="error" title="The template could not be imported.">
              <p>{version.job.error}</p>
              <FirstImportErrors key={version.id} version={version.id} />
            </Notice>
          ) : form.error ? (
            <Failure error={form.error} />
          ) : null}
          <Section title="General">
            <Stack>
              {all.length > 1 ? (
                <SelectField
                  label="Organization"
                  value={form.values.organization || (firstOf(orgs) ?? "")}
                  onChange={(value) => form.set("organization", value)}
                  options={orgs.map((org) => [org.id, org.display_name || org.name] as const)}
                />
              ) : null}
              {/* Other programs find this field by its star; a screen reader is told without it. */}
              <TextField
                label={
                  <>
                    Name
                    <span aria-hidden="true" className="text-bad">
                      {" "}
                      *
                    </span>
                  </>
                }
                aria-required
                hint="Part of its address, and what the command line calls it."
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
                label="Everyone in the organization may use it"
                checked={form.values.everyone}
                onChange={(on) => form.set("everyone", on)}
              />
            </Stack>
          </Section>
          {missing ? (
            <Section title="Variables" description="The template needs these to be imported.">
              <Notice kind="warning" title="Some variables have no value yet" />
              <div className="mt-4">
                <VariablesForm
                  variables={variables}
                  values={known}
                  onChange={(name, value) => setValues({ ...known, [name]: value })}
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
            {form.busy && version ? (
              <Button
                icon={<Ban />}
                onClick={() =>
                  void cancel().catch((error: unknown) =>
                    toast.failed("The import was not canceled", error),
                  )
                }
              >
                Cancel import
              </Button>
            ) : (
              <ButtonLink to="/templates/new">Cancel</ButtonLink>
            )}
            <Button type="submit" look="primary" busy={form.busy} data-testid="create">
              Save template
            </Button>
          </div>
        </Stack>
      </form>
      <Confirm
        open={leaving.state === "blocked"}
        onClose={() => leaving.reset?.()}
        title="Leave before the template is made?"
        confirm="Cancel the import"
        onConfirm={async () => {
          left.current = true;
          await cancel().catch(() => undefined); // it may have ended meanwhile
          leaving.proceed?.();
        }}
      >
        The import still runs, and the template is made from this page when it is done. Leaving
        cancels the import.
      </Confirm>
      <p className="mt-4 text-sm text-muted">
        Its schedule, permissions and the like are under <em>Settings</em> once it is there.{" "}
        <Link to="/templates" className="underline">
          All templates
        </Link>
      </p>
    </Narrow>
  );
}
