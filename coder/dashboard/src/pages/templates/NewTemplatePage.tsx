// Creation of a template: from an example, an archive, or a copy. Shows the import while it runs,
// and asks for required variables.
import { useQuery } from "@tanstack/react-query";
import { LockKeyhole } from "lucide-react";
import { useState } from "react";
import { useSearchParams } from "react-router";

import { NO_TEMPLATES, usePermissions } from "../../api/permissions";
import { templateById, templateExamples, templateVersion } from "../../api/queries/templates";
import { ButtonLink } from "../../ui/Button";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { SkeletonRows } from "../../ui/Loading";
import { Narrow, PageHead } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { type ProvisionerTags } from "./TagEditor";
import type { Uploaded } from "./new/UploadBox";
import { Gallery } from "./new/Gallery";
import { CreateForm } from "./new/CreateForm";
import type { Source } from "./new/source";

export function NewTemplatePage({ title = "Create Template" }: { title?: string }) {
  const [params] = useSearchParams();
  const example = params.get("exampleId") ?? "";
  const from = params.get("fromTemplate") ?? "";
  const provisioner = params.get("provisioner_type") === "echo" ? "echo" : "terraform"; // used by servers in tests
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
        actions={<ButtonLink to="/templates">View templates</ButtonLink>}
      >
        Ask an administrator of the organization for this permission.
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
            display: file.frontMatterFields.display_name,
            description: file.frontMatterFields.description,
            icon: file.frontMatterFields.icon,
            title: "Template from archive",
            archive: { name: file.file, onRemove: () => setFile(null) },
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
