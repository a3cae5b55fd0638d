// The template version for the new workspace.
import { useQuery } from "@tanstack/react-query";

import { useTemplateRights } from "../../../api/permissions";
import { templateVersions } from "../../../api/queries/templates";
import type { Template } from "../../../api/types";
import { SelectField } from "../../../ui/forms/Field";

export function VersionField({
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
