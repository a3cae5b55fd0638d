// Changing a template in the browser: files, a build with its log, what it makes, publishing. What was typed is guarded
// against leaving the page.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Ban, FilePlus2, Hammer, LockKeyhole, Pencil, Rocket, Trash2 } from "lucide-react";
import { lazy, Suspense, useEffect, useMemo, useState } from "react";
import { useBlocker, useNavigate, useParams } from "react-router";

import { ApiError, get, patch, seg } from "../../api/client";
import { useTemplateRights } from "../../api/permissions";
import {
  templateVersion,
  templateVersionByName,
  versionResources,
  versionVariables,
} from "../../api/queries/templates";
import type { Template, TemplateVersion } from "../../api/types";
import { StatusText } from "../../ui/Badge";
import { Button, buttonClass, ButtonLink, IconButton } from "../../ui/Button";
import { Confirm } from "../../ui/Confirm";
import { Dialog } from "../../ui/Dialog";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { ConflictError, useConflict } from "../../ui/forms/conflict";
import { Checkbox, TextArea, TextField } from "../../ui/forms/Field";
import { useForm } from "../../ui/forms/form";
import { SkeletonRows } from "../../ui/Loading";
import { Notice } from "../../ui/Notice";
import { PageHead, Stack } from "../../ui/Page";
import { TabPanel, Tabs } from "../../ui/Tabs";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { counted } from "../../lib/words";
import { WaitingNotice } from "../../features/provisioner/WaitingNotice";
import { NotFoundPage } from "../../ui/NotFoundPage";
import { useVersionLog } from "../../features/build/logs";
import { ResourceRow } from "../../features/workspace/ResourceRow";
import { archiveOf, createVersion, imported, textOf, uploadFiles } from "./archive";
import { FileTree } from "./FileTree";
import { ImportLog } from "./ImportLog";
import { templatePath } from "../../features/template/paths";
import { problemsOf } from "./problems";
import { Problems } from "./Problems";
import { TagEditor, type ProvisionerTags } from "./TagEditor";
import type { ArchiveFile } from "./tar";
import { useTemplate } from "../../features/template/useTemplate";
import { givenValues, VariablesForm } from "./VariablesForm";
import { JOB_TONES } from "../../features/provisioner/job-states";

const CodeEditor = lazy(() => import("../../ui/text/CodeEditor"));
const encoder = new TextEncoder();

export function EditorPage() {
  const { template, view } = useTemplate();
  const name = useParams()["version"] ?? "";
  useTitle(template?.name ?? "", "Template Editor");
  const found = useQuery({
    ...templateVersionByName(template?.organization_name ?? "", template?.name ?? "", name),
    enabled: template !== null,
  });
  const files = useQuery({
    ...archiveOf(found.data?.job.file_id ?? ""),
    enabled: found.data !== undefined,
  });
  const may = useTemplateRights(template);
  if (!template) return view;
  if (may.update === false)
    return (
      <Empty
        level={1}
        icon={LockKeyhole}
        title="You may use this template, not change it."
        actions={<ButtonLink to={templatePath(template)}>Back to the template</ButtonLink>}
      >
        Its administrators can.
      </Empty>
    );
  // Once there, nothing takes away what is being written: not a refresh that fails, nor a version that was renamed elsewhere.
  if (found.isLoadingError && found.error instanceof ApiError && found.error.status === 404)
    return <NotFoundPage />;
  const failed = found.isLoadingError ? found.error : files.isLoadingError ? files.error : null;
  if (failed)
    return (
      <Failure
        error={failed}
        retry={() => {
          void found.refetch();
          void files.refetch();
        }}
      />
    );
  if (!found.data || !files.data) return <SkeletonRows />;
  return <Editor key={found.data.id} template={template} base={found.data} files={files.data} />;
}

function Editor({
  template,
  base,
  files,
}: {
  template: Template;
  base: TemplateVersion;
  files: readonly ArchiveFile[];
}) {
  const navigate = useNavigate();
  const queries = useQueryClient();
  const start = useMemo(() => new Map(files.map((file) => [file.path, file.data])), [files]);
  const [current, setCurrent] = useState<ReadonlyMap<string, Uint8Array>>(start);
  const [built, setBuilt] = useState<ReadonlyMap<string, Uint8Array>>(start);
  const [path, setPath] = useState(start.has("main.tf") ? "main.tf" : (files[0]?.path ?? ""));
  const [version, setVersion] = useState(base);
  const [values, setValues] = useState<Record<string, string>>({});
  const [tags, setTags] = useState<ProvisionerTags>(() => base.job.tags as ProvisionerTags);
  const [builtTags, setBuiltTags] = useState(tags);
  const [building, setBuilding] = useState(false);
  const [failure, setFailure] = useState<Error | null>(null);
  const [tab, setTab] = useState("log");
  const [dialog, setDialog] = useState<"new" | "rename" | "delete" | "publish" | null>(null);
  const [active] = useState(template.active_version_id); // one that becomes active meanwhile is told of before anything is published
  const [target, setTarget] = useState<{ file: string; line: number } | null>(null);
  const over =
    version.job.status !== "pending" &&
    version.job.status !== "running" &&
    version.job.status !== "canceling";
  const log = useVersionLog(over ? version.id : null).lines;
  const problems = useMemo(
    () => problemsOf(log, version.job.error ?? ""),
    [log, version.job.error],
  );
  const errorMarks = useMemo(
    () =>
      problems.flatMap(({ severity, title, detail, place }) =>
        place?.file === path
          ? [{ line: place.line, severity, message: detail ? `${title}: ${detail}` : title }]
          : [],
      ),
    [problems, path],
  );
  const dirty = current !== built || tags !== builtTags;
  const published = version.id === template.active_version_id;
  const blocker = useBlocker(
    ({ currentLocation, nextLocation }) =>
      dirty && currentLocation.pathname !== nextLocation.pathname,
  );
  useEffect(() => {
    if (!dirty) return;
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", warn);
    return () => window.removeEventListener("beforeunload", warn);
  }, [dirty]);

  const build = async () => {
    setBuilding(true);
    setFailure(null);
    setTab("log");
    try {
      const hash = await uploadFiles([...current].map(([name, data]) => ({ path: name, data })));
      const made = await createVersion(template.organization_id, {
        template_id: template.id,
        file_id: hash,
        tags,
        user_variable_values: givenValues(values),
      });
      setVersion(made);
      setBuilt(current);
      setBuiltTags(tags);
      const done = await imported(made.id, setVersion);
      setVersion(done);
      if (done.job.status === "succeeded") setTab("resources");
      if (done.job.error_code === "REQUIRED_TEMPLATE_VARIABLES") setTab("variables");
    } catch (error) {
      setFailure(error instanceof Error ? error : new Error(String(error)));
    } finally {
      setBuilding(false);
    }
  };
  const cancel = () =>
    patch(`/api/v2/templateversions/${version.id}/cancel`).catch((error: unknown) =>
      toast.failed("The build was not canceled", error),
    );
  const write = (name: string, text: string) =>
    setCurrent((old) => new Map(old).set(name, encoder.encode(text)));
  const text = useMemo(
    () => (current.has(path) ? textOf({ path, data: current.get(path) ?? new Uint8Array() }) : ""),
    [current, path],
  );
  const marks = useMemo(
    () =>
      new Map(
        [...current].flatMap(([name, data]) =>
          start.get(name) === data ? [] : [[name, start.has(name) ? "changed" : "new"] as const],
        ),
      ),
    [current, start],
  );
  const ready = !dirty && !building && version.id !== base.id && version.job.status === "succeeded";
  const publishable = ready || (!published && version.job.status === "succeeded" && !dirty);
  const home = templatePath(template);
  const list = (
    <Problems
      problems={problems}
      has={(file) => current.has(file)}
      onShow={(place) => {
        setPath(place.file);
        setTarget(place);
      }}
    />
  );
  return (
    <>
      <PageHead
        title={`Template editor: ${template.display_name || template.name}`}
        crumbs={[
          ["Templates", "/templates"],
          [template.display_name || template.name, home],
          [base.name, `${home}/versions/${seg(base.name)}`],
          ["Edit"],
        ]}
        badge={
          <StatusText
            tone={dirty && !building ? "warn" : JOB_TONES[version.job.status]}
            pulse={building}
          >
            {dirty
              ? "Changed, not built yet"
              : version.id === base.id
                ? base.name
                : `${version.name}: ${version.job.status}`}
          </StatusText>
        }
        actions={
          <>
            <ButtonLink to={home}>Close</ButtonLink>
            {ready ? (
              <ButtonLink to={`${home}/workspace?version=${version.id}`}>
                Create workspace
              </ButtonLink>
            ) : null}
            {building && version.id !== base.id ? (
              <Button icon={<Ban />} onClick={() => void cancel()}>
                Cancel build
              </Button>
            ) : null}
            <TagEditor tags={tags} onChange={setTags} />
            <Button
              icon={<Hammer />}
              busy={building}
              onClick={() => void build()}
              look={ready ? "secondary" : "primary"}
            >
              Build
            </Button>
            <Button
              icon={<Rocket />}
              look={ready ? "primary" : "secondary"}
              disabled={!publishable}
              title={
                publishable
                  ? undefined
                  : published && !dirty
                    ? "This version is the active one. Change something and build it."
                    : "What is published is a version: build first what you have changed."
              }
              onClick={() => setDialog("publish")}
            >
              Publish
            </Button>
          </>
        }
      />
      <Stack className="gap-3">
        {failure ? <Failure error={failure} /> : null}
        {version.job.status === "pending" ? (
          <WaitingNotice organization={template.organization_id} job={version.job} staying />
        ) : null}
        {version.job.error ? (
          <Notice kind="error" title="The build failed.">
            <p>{version.job.error}</p>
            {list}
          </Notice>
        ) : over && problems.length > 0 ? (
          <Notice kind="warning" title={`The build has ${counted(problems.length, "warning")}.`}>
            {list}
          </Notice>
        ) : null}
        <div className="grid grid-cols-[15rem_minmax(0,1fr)] overflow-hidden rounded-xl border border-line bg-surface max-md:grid-cols-1">
          <div className="border-r border-line max-md:border-r-0 max-md:border-b">
            <div className="flex items-center justify-between border-b border-line py-1 pr-1.5 pl-3">
              <span className="text-sm font-medium text-muted">Files</span>
              <span className="flex">
                <IconButton size="sm" label="Create file" onClick={() => setDialog("new")}>
                  <FilePlus2 />
                </IconButton>
                <IconButton
                  size="sm"
                  label={`Rename ${path}`}
                  disabled={path === ""}
                  onClick={() => setDialog("rename")}
                >
                  <Pencil />
                </IconButton>
                <IconButton
                  size="sm"
                  label={`Delete ${path}`}
                  disabled={path === ""}
                  onClick={() => setDialog("delete")}
                >
                  <Trash2 />
                </IconButton>
              </span>
            </div>
            <FileTree
              paths={[...current.keys()]}
              shown={path}
              onShow={(next) => {
                setPath(next);
                setTarget(null);
              }}
              marks={marks}
            />
          </div>
          <div className="h-[48vh] min-h-72">
            {!current.has(path) ? (
              <p className="p-6 text-muted">Choose a file.</p>
            ) : text === null ? (
              <p className="p-6 text-muted">This file is not text.</p>
            ) : (
              <Suspense fallback={<SkeletonRows rows={4} />}>
                <CodeEditor
                  key={path}
                  path={path}
                  text={text}
                  label={path}
                  marks={errorMarks}
                  target={target?.file === path ? target : null}
                  onChange={(next) => write(path, next)}
                />
              </Suspense>
            )}
          </div>
        </div>
        <Tabs
          label="Output"
          value={tab}
          onChange={setTab}
          items={[
            { value: "log", text: "Build log" },
            { value: "resources", text: "Resources" },
            { value: "variables", text: "Variables" },
          ]}
        >
          <TabPanel value="log" className="pt-3">
            <ImportLog key={version.id} version={version.id} height="16rem" />
          </TabPanel>
          <TabPanel value="resources" className="pt-3">
            <Made version={version} />
          </TabPanel>
          <TabPanel value="variables" className="pt-3">
            <Variables
              version={version}
              values={values}
              onChange={(name, value) => setValues((old) => ({ ...old, [name]: value }))}
            />
          </TabPanel>
        </Tabs>
      </Stack>
      {dialog === "new" || dialog === "rename" ? (
        <NameDialog
          title={dialog === "new" ? "Create file" : `Rename ${path}`}
          start={dialog === "new" ? "" : path}
          taken={[...current.keys()]}
          onClose={() => setDialog(null)}
          onName={(name) => {
            setCurrent((old) => {
              const next = new Map(old);
              next.set(
                name,
                dialog === "rename" ? (old.get(path) ?? new Uint8Array()) : new Uint8Array(),
              );
              if (dialog === "rename") next.delete(path);
              return next;
            });
            setPath(name);
            setDialog(null);
          }}
        />
      ) : null}
      <Confirm
        open={dialog === "delete"}
        onClose={() => setDialog(null)}
        title={`Delete ${path}?`}
        confirm="Delete file"
        onConfirm={async () => {
          setCurrent((old) => {
            const next = new Map(old);
            next.delete(path);
            return next;
          });
          setPath([...current.keys()].find((name) => name !== path) ?? "");
        }}
      >
        It is gone from the next build. Versions there are keep it.
      </Confirm>
      {dialog === "publish" ? (
        <Publish
          template={template}
          version={version}
          active={active}
          onClose={() => setDialog(null)}
          onDone={async (name) => {
            await Promise.all([
              queries.invalidateQueries({ queryKey: ["template"] }),
              queries.invalidateQueries({ queryKey: ["templates"] }),
            ]);
            toast.done(`${name} is published.`);
            await navigate(home);
          }}
        />
      ) : null}
      <Confirm
        open={blocker.state === "blocked"}
        onClose={() => blocker.reset?.()}
        title="Leave without building?"
        confirm="Discard changes"
        onConfirm={async () => blocker.proceed?.()}
      >
        What you have changed since the last build is lost.
      </Confirm>
    </>
  );
}

function Made({ version }: { version: TemplateVersion }) {
  const answer = useQuery({
    ...versionResources(version.id),
    enabled: version.job.status === "succeeded",
  });
  if (version.job.status !== "succeeded")
    return <p className="text-muted">They are known once the build has succeeded.</p>;
  return (
    <Stack className="gap-2">
      {(answer.data ?? [])
        .filter((resource) => resource.workspace_transition === "start")
        .map((resource) => (
          <ResourceRow key={resource.id} resource={resource} />
        ))}
    </Stack>
  );
}

function Variables({
  version,
  values,
  onChange,
}: {
  version: TemplateVersion;
  values: Record<string, string>;
  onChange: (name: string, value: string) => void;
}) {
  const variables = useQuery({ ...versionVariables(version.id), retry: false }).data ?? [];
  if (variables.length === 0) return <p className="text-muted">This version has no variables.</p>;
  return (
    <div className="max-w-xl">
      <p className="mb-3 text-sm text-muted">They are used by the next build.</p>
      <VariablesForm variables={variables} values={values} onChange={onChange} />
    </div>
  );
}

function NameDialog({
  title,
  start,
  taken,
  onClose,
  onName,
}: {
  title: string;
  start: string;
  taken: readonly string[];
  onClose: () => void;
  onName: (name: string) => void;
}) {
  const form = useForm(
    { name: start },
    async ({ name }) => onName(name),
    ({ name }) => {
      if (name !== start && taken.includes(name)) return { name: "There is a file of that name." };
      if (!/^[\w.-]+(?:\/[\w.-]+)*$/.test(name) || name.split("/").includes(".."))
        return { name: "Letters, digits, dots, hyphens; folders with a slash." };
      return {};
    },
  );
  return (
    <Dialog open onClose={onClose} title={title}>
      <form className="flex flex-col gap-4" onSubmit={form.submit}>
        <TextField
          label="File path"
          autoFocus
          required
          value={form.values.name}
          problem={form.problem("name")}
          placeholder="main.tf"
          onChange={(value) => form.set("name", value)}
        />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary">
            {start ? "Rename" : "Create"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

interface PublishProps {
  template: Template;
  version: TemplateVersion;
  /** The active version when the editing began. */
  active: string;
  onClose: () => void;
  onDone: (name: string) => Promise<void>;
}

interface Publication {
  name: string;
  message: string;
  active: boolean;
}

function Publish({ template, version, active, onClose, onDone }: PublishProps) {
  const conflict = useConflict(
    () => get<Template>(`/api/v2/templates/${template.id}`),
    (found) => ({ version: found.active_version_id }),
    { version: active },
  );
  const send = async (values: Publication) => {
    if (values.name !== version.name || values.message !== version.message)
      await patch(`/api/v2/templateversions/${version.id}`, {
        name: values.name,
        message: values.message,
      });
    if (values.active) await patch(`/api/v2/templates/${template.id}/versions`, { id: version.id });
    await onDone(values.name);
  };
  // What becomes no active version takes nobody's place.
  const form = useForm<Publication>(
    { name: version.name, message: version.message, active: true },
    (values) => (values.active ? conflict.guard(send)(values) : send(values)),
  );
  return (
    <Dialog
      open
      onClose={onClose}
      title="Publish new version"
      description="People see its name and what you write about it."
    >
      <form className="flex flex-col gap-4" onSubmit={form.submit}>
        {conflict.theirs ? (
          <Overtaken
            template={template}
            version={conflict.theirs.version}
            onAnyway={() => {
              conflict.overwrite();
              form.submit();
            }}
          />
        ) : null}
        {form.error && !(form.error instanceof ConflictError) ? (
          <Failure error={form.error} />
        ) : null}
        <TextField
          label="Version name"
          required
          value={form.values.name}
          problem={form.problem("name")}
          onChange={(value) => form.set("name", value)}
        />
        <TextArea
          label="Message"
          rows={3}
          value={form.values.message}
          problem={form.problem("message")}
          placeholder="What has changed"
          onChange={(value) => form.set("message", value)}
        />
        <Checkbox
          label="Promote to active version"
          hint="New workspaces use it; those there say that they are outdated."
          checked={form.values.active}
          onChange={(on) => form.set("active", on)}
        />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={form.busy}>
            Publish
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** Somebody else was quicker: what they have made active, and the ways on. */
function Overtaken({
  template,
  version,
  onAnyway,
}: {
  template: Template;
  version: string;
  onAnyway: () => void;
}) {
  const theirs = useQuery(templateVersion(version)).data;
  return (
    <Notice
      kind="warning"
      title="Another version became active while you were editing"
      actions={
        <>
          <Button size="sm" onClick={onAnyway}>
            Publish mine over it
          </Button>
          {theirs ? (
            <a
              className={buttonClass("secondary", "sm")}
              href={`${templatePath(template)}/versions/${seg(theirs.name)}`}
              target="_blank"
              rel="noreferrer"
            >
              See what it changes
            </a>
          ) : null}
        </>
      }
    >
      {theirs ? (
        <p>
          <strong>{theirs.name}</strong>, by {theirs.created_by.username}
          {theirs.message ? `: ${theirs.message}` : ""}.{" "}
        </p>
      ) : null}
      <p>Nothing of yours is published yet. Yours has none of its changes.</p>
    </Notice>
  );
}
