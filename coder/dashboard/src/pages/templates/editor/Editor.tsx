// The editor of a template's files: changes, a build with its log, publishing. Leaving with changes
// needs confirmation.
import { useQueryClient } from "@tanstack/react-query";
import { Ban, FlaskConical, Hammer, Rocket } from "lucide-react";
import { useEffect, useMemo, useState } from "react";
import { useBlocker, useNavigate } from "react-router";

import { patch, seg } from "../../../api/client";
import { useWorkspaceOwners } from "../../../api/permissions";
import type { Template, TemplateVersion } from "../../../api/types";
import { StatusText } from "../../../ui/Badge";
import { Button, ButtonLink } from "../../../ui/Button";
import { Confirm } from "../../../ui/Confirm";
import { Failure } from "../../../ui/Failure";
import { Notice } from "../../../ui/Notice";
import { PageHead, Stack } from "../../../ui/Page";
import { TabPanel, Tabs } from "../../../ui/Tabs";
import { toast } from "../../../ui/toast";
import { counted } from "../../../lib/words";
import { WaitingNotice } from "../../../features/provisioner/WaitingNotice";
import { useVersionLog } from "../../../features/build/logs";
import { createVersion, waitForImport, uploadFiles } from "../archive";
import { ImportLog } from "../ImportLog";
import { templatePath } from "../../../features/template/paths";
import { problemsOf } from "../problems";
import { Problems } from "../Problems";
import { TagEditor, type ProvisionerTags } from "../TagEditor";
import type { ArchiveFile } from "../tar";
import { givenValues } from "../VariablesForm";
import { JOB_TONES, stateOf } from "../../../features/provisioner/job-states";
import { Made, Variables } from "./Output";
import { EditorFiles } from "./EditorFiles";
import { NameDialog } from "./NameDialog";
import { Publish } from "./PublishDialog";
import { TestRunDialog } from "./TestRunDialog";
import { useBuildKey } from "./useBuildKey";
import { useEditedFiles } from "./useEditedFiles";

type Asked = "new" | "rename" | "delete" | "publish" | "test";

export function Editor({
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
  const edited = useEditedFiles(files);
  const { current, path } = edited;
  const [built, setBuilt] = useState(edited.start);
  const [version, setVersion] = useState(base);
  const [values, setValues] = useState<Record<string, string>>({});
  const [tags, setTags] = useState<ProvisionerTags>(() => base.job.tags as ProvisionerTags);
  const [builtTags, setBuiltTags] = useState(tags);
  const [building, setBuilding] = useState(false);
  const [failure, setFailure] = useState<Error | null>(null);
  const [tab, setTab] = useState("log");
  const [dialog, setDialog] = useState<Asked | null>(null);
  // If another version becomes active meanwhile, the user is warned before publishing.
  const [active] = useState(template.active_version_id);
  const buildEnded = !["pending", "running", "canceling"].includes(version.job.status);
  const log = useVersionLog(buildEnded ? version.id : null).lines;
  const problems = useMemo(
    () => problemsOf(log, version.job.error ?? ""),
    [log, version.job.error],
  );
  const errorMarks = useMemo(
    () =>
      problems.flatMap(({ severity, title, detail, location }) =>
        location?.file === path
          ? [{ line: location.line, severity, message: detail ? `${title}: ${detail}` : title }]
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
      const hash = await uploadFiles(edited.archive());
      const created = await createVersion(template.organization_id, {
        template_id: template.id,
        file_id: hash,
        tags,
        user_variable_values: givenValues(values),
      });
      setVersion(created);
      setBuilt(current);
      setBuiltTags(tags);
      const done = await waitForImport(created.id, setVersion);
      setVersion(done);
      if (done.job.status === "succeeded") setTab("resources");
      if (done.job.error_code === "REQUIRED_TEMPLATE_VARIABLES") setTab("variables");
    } catch (error) {
      setFailure(error instanceof Error ? error : new Error(String(error)));
    } finally {
      setBuilding(false);
    }
  };
  useBuildKey(() => void build(), building);
  const cancel = () =>
    patch(`/api/v2/templateversions/${version.id}/cancel`).catch((error: unknown) =>
      toast.failed("Failed to cancel the build", error),
    );
  const state = stateOf(version.job);
  const ready = !dirty && !building && version.id !== base.id && version.job.status === "succeeded";
  const publishable = ready || (!published && version.job.status === "succeeded" && !dirty);
  const mayCreate = useWorkspaceOwners(template.organization_id).self;
  const testable = mayCreate && !dirty && !building && version.job.status === "succeeded";
  const home = templatePath(template);
  const list = (
    <Problems problems={problems} has={(file) => current.has(file)} onShow={edited.showPlace} />
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
          <StatusText tone={dirty && !building ? "warn" : JOB_TONES[state]} pulse={building}>
            {dirty
              ? "Unbuilt changes"
              : version.id === base.id
                ? base.name
                : `${version.name}: ${state}`}
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
            {testable ? (
              <Button icon={<FlaskConical />} onClick={() => setDialog("test")}>
                Test
              </Button>
            ) : null}
            <TagEditor tags={tags} onChange={setTags} />
            <Button
              icon={<Hammer />}
              busy={building}
              aria-keyshortcuts="Control+Enter Meta+Enter"
              onClick={() => void build()}
              variant={ready ? "secondary" : "primary"}
            >
              Build
            </Button>
            <Button
              icon={<Rocket />}
              variant={ready ? "primary" : "secondary"}
              disabled={!publishable}
              title={
                publishable
                  ? undefined
                  : published && !dirty
                    ? "This version is already active. Change and build it to publish a new one."
                    : "Build your changes before you publish."
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
          <Notice
            kind={state === "canceled" ? "warning" : "error"}
            title={`The build ${state === "canceled" ? "was canceled" : "failed"}`}
          >
            <p>{version.job.error}</p>
            {list}
          </Notice>
        ) : buildEnded && problems.length > 0 ? (
          <Notice kind="warning" title={`The build has ${counted(problems.length, "warning")}`}>
            {list}
          </Notice>
        ) : null}
        <EditorFiles
          edited={edited}
          errors={errorMarks}
          onCreate={() => setDialog("new")}
          onRename={() => setDialog("rename")}
          onDelete={() => setDialog("delete")}
        />
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
            if (dialog === "rename") edited.rename(name);
            else edited.create(name);
            setDialog(null);
          }}
        />
      ) : null}
      <Confirm
        open={dialog === "delete"}
        onClose={() => setDialog(null)}
        title={`Delete ${path}?`}
        confirm="Delete file"
        onConfirm={async () => edited.remove()}
      >
        The file is removed from the next build. Existing versions keep it.
      </Confirm>
      {dialog === "test" ? (
        <TestRunDialog template={template} version={version} onClose={() => setDialog(null)} />
      ) : null}
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
            toast.done(`Version "${name}" published successfully.`);
            await navigate(home);
          }}
        />
      ) : null}
      <Confirm
        open={blocker.state === "blocked"}
        onClose={() => blocker.reset?.()}
        title="Discard unbuilt changes?"
        confirm="Discard changes"
        onConfirm={async () => blocker.proceed?.()}
      >
        Changes since the last build are lost.
      </Confirm>
    </>
  );
}
