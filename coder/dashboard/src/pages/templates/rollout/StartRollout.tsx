// The dialog that starts a rollout of a version.
import { useQuery } from "@tanstack/react-query";

import { post } from "../../../api/client";
import { groupsOf } from "../../../api/queries/people";
import type { Template, TemplateRollout, TemplateVersion } from "../../../api/types";
import { SelectField, TextField } from "../../../ui/forms/Field";
import { FormDialog } from "../../../ui/forms/FormDialog";
import { useForm } from "../../../ui/forms/form";
import { toast } from "../../../ui/toast";
import { TemplatePreview } from "../../../features/workspace/preview/TemplatePreview";
import { readStages } from "./rollout";

const STAGES = "5, 25, 100";
const GROUP_STAGES = "0, 100";

export function StartRollout({
  template,
  version,
  onClose,
  onStarted,
}: {
  template: Template;
  version: TemplateVersion;
  onClose: () => void;
  onStarted: () => Promise<unknown>;
}) {
  const groups = useQuery(groupsOf(template.organization_name)).data ?? [];
  const form = useForm(
    { group_id: "", stages: STAGES, failure_percent: "20", minimum_builds: "5" },
    async (values) => {
      await post<TemplateRollout>(`/api/v2/templates/${template.id}/rollouts`, {
        template_version_id: version.id,
        group_id: values.group_id || null,
        stages: readStages(values.stages),
        failure_percent: Number(values.failure_percent),
        minimum_builds: Number(values.minimum_builds),
      });
      toast.done(`The rollout of ${version.name} has started.`);
      await onStarted();
      onClose();
    },
    (values) =>
      readStages(values.stages)
        ? {}
        : { stages: "Write percentages separated by commas, such as 5, 25, 100." },
  );
  const { values, set, problem } = form;
  return (
    <FormDialog
      title={`Roll out ${version.name}`}
      description={
        "Some workspaces are offered this version by automatic updates and the Update button. " +
        "It becomes the active version at the last stage."
      }
      form={form}
      submit="Start rollout"
      onClose={onClose}
    >
      <SelectField
        label="Begin with"
        value={values.group_id}
        problem={problem("group_id")}
        onChange={(group) => {
          set("group_id", group);
          if (group && values.stages === STAGES) set("stages", GROUP_STAGES);
          if (!group && values.stages === GROUP_STAGES) set("stages", STAGES);
        }}
        options={[
          ["", "A part of all workspaces"],
          ...groups
            .filter((group) => group.id !== template.organization_id)
            .map((group) => [group.id, `Group ${group.display_name || group.name}`] as const),
        ]}
      />
      <TextField
        label="Stages"
        required
        hint="Percentages of the workspaces, separated by commas. The last one is 100. With a group, the first may be 0."
        value={values.stages}
        problem={problem("stages")}
        onChange={(value) => set("stages", value)}
      />
      <TextField
        label="Failure limit in percent"
        type="number"
        min={0}
        max={100}
        required
        hint="The rollout stops when more of its builds fail."
        value={values.failure_percent}
        problem={problem("failure_percent")}
        onChange={(value) => set("failure_percent", value)}
      />
      <TextField
        label="Builds before the limit applies"
        type="number"
        min={1}
        required
        value={values.minimum_builds}
        problem={problem("minimum_builds")}
        onChange={(value) => set("minimum_builds", value)}
      />
      <TemplatePreview template={template} version={version.id} />
    </FormDialog>
  );
}
