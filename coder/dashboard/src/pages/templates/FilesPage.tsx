// The files of a version, and the changes since the previous version.
import { useQuery } from "@tanstack/react-query";
import { Pencil } from "lucide-react";
import { lazy, Suspense, useState } from "react";

import { seg } from "../../api/client";
import { previousVersion, templateVersions } from "../../api/queries/templates";
import type { Template, TemplateVersion } from "../../api/types";
import { ButtonLink } from "../../ui/Button";
import { Failure } from "../../ui/Failure";
import { Switch } from "../../ui/forms/Toggle";
import { SkeletonRows } from "../../ui/Loading";
import { useTitle } from "../../ui/title";
import { archiveOf, textOf } from "./archive";
import { FileTree } from "./FileTree";
import { templatePath } from "../../features/template/paths";
import { useTemplateContext } from "./TemplateLayout";

const CodeEditor = lazy(() => import("../../ui/text/CodeEditor"));

export function FilesPage() {
  const { template, version, may } = useTemplateContext();
  useTitle(`${template.name} · Source Code`);
  return <SourceFiles template={template} version={version} editable={may.update === true} />;
}

export function SourceFiles({
  template,
  version,
  editable,
}: {
  template: Template;
  version: TemplateVersion;
  editable: boolean;
}) {
  const now = useQuery(archiveOf(version.job.file_id));
  // The first version has no previous one, and requesting it is an error.
  const versions = useQuery(templateVersions(template.id)).data ?? [];
  const first = versions.length === 0 || versions[versions.length - 1]?.id === version.id;
  const previous = useQuery({
    ...previousVersion(template.organization_name, template.name, version.name),
    enabled: !first,
  }).data;
  const before = useQuery({
    ...archiveOf(previous?.job.file_id ?? ""),
    enabled: Boolean(previous),
  }).data;
  const [shown, setShown] = useState<string | null>(null);
  const [compare, setCompare] = useState(false);
  if (now.isPending) return <SkeletonRows rows={3} />;
  if (now.isLoadingError) return <Failure error={now.error} retry={() => void now.refetch()} />;
  const files = new Map(now.data.map((file) => [file.path, textOf(file)]));
  const old = new Map((before ?? []).map((file) => [file.path, textOf(file)]));
  const marks = new Map<string, string>();
  if (before) {
    for (const [path, text] of files)
      if (!old.has(path)) marks.set(path, "new");
      else if (old.get(path) !== text) marks.set(path, "changed");
    for (const path of old.keys()) if (!files.has(path)) marks.set(path, "deleted");
  }
  const paths = [...new Set([...files.keys(), ...(compare ? old.keys() : [])])];
  const path =
    shown !== null && paths.includes(shown)
      ? shown
      : files.has("main.tf")
        ? "main.tf"
        : (paths[0] ?? "");
  const text = files.has(path) ? files.get(path) : "";
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap items-center gap-4">
        {before ? (
          <Switch
            label={`Compare with ${previous?.name ?? ""}`}
            checked={compare}
            onChange={setCompare}
          />
        ) : (
          <span className="text-sm text-muted">Version {version.name}</span>
        )}
        {editable ? (
          <span className="ml-auto">
            <ButtonLink
              icon={<Pencil />}
              to={`${templatePath(template)}/versions/${seg(version.name)}/edit`}
            >
              Edit
            </ButtonLink>
          </span>
        ) : null}
      </div>
      <div className="grid grid-cols-[15rem_minmax(0,1fr)] overflow-hidden rounded-xl border border-line bg-surface max-md:grid-cols-1">
        <div className="border-r border-line max-md:border-r-0 max-md:border-b">
          <FileTree paths={paths} shown={path} onShow={setShown} {...(compare ? { marks } : {})} />
        </div>
        <div className="min-w-0">
          {text === null ? (
            <p className="p-6 text-muted">This file is binary.</p>
          ) : (
            <Suspense fallback={<SkeletonRows rows={4} />}>
              <CodeEditor
                key={`${path} ${compare}`}
                path={path}
                text={text ?? ""}
                label={path}
                before={compare ? (old.get(path) ?? "") : undefined}
                className="max-h-[70vh] [&_.cm-editor]:max-h-[70vh]"
              />
            </Suspense>
          )}
        </div>
      </div>
    </div>
  );
}
