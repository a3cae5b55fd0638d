// Ephemeral parameters for one build, next to the button that starts it; nothing if the template
// has none.
import { useQuery } from "@tanstack/react-query";
import { ChevronDown } from "lucide-react";
import { useState } from "react";

import { versionParameters } from "../../../api/queries/templates";
import type { Workspace, WorkspaceBuildParameter } from "../../../api/types";
import { Button, IconButton } from "../../../ui/Button";
import { SkeletonRows } from "../../../ui/Loading";
import { Popover } from "../../../ui/Popover";
import {
  FIX_PARAMETERS,
  hasErrors,
  useDynamicParameters,
} from "../../../features/parameter/dynamic-parameters";
import { ParameterField } from "../../../features/parameter/ParameterField";
import { startVersion } from "./builds";

interface BuildOptionsProps {
  workspace: Workspace;
  /** "Start" or "Restart". */
  verb: string;
  onBuild: (values: WorkspaceBuildParameter[]) => void;
}

export function BuildOptions({ workspace, verb, onBuild }: BuildOptionsProps) {
  const [open, setOpen] = useState(false);
  const allParameters = useQuery(versionParameters(startVersion(workspace))).data ?? [];
  if (!allParameters.some((parameter) => parameter.ephemeral)) return null;
  return (
    <Popover
      label={`${verb} with build options`}
      open={open}
      onOpenChange={setOpen}
      className="w-96 p-4"
      trigger={
        <IconButton
          variant="secondary"
          label={`${verb} with build options`}
          data-testid="build-parameters-button"
          className="-ml-1.5"
        >
          <ChevronDown />
        </IconButton>
      }
    >
      <Options
        workspace={workspace}
        verb={verb}
        onBuild={(values) => {
          setOpen(false);
          onBuild(values);
        }}
      />
    </Popover>
  );
}

function Options({ workspace, verb, onBuild }: BuildOptionsProps) {
  const dynamic = useDynamicParameters(startVersion(workspace), workspace.owner_id, {});
  const shown = dynamic.parameters?.filter((parameter) => parameter.ephemeral) ?? null;
  const invalid = hasErrors({ ...dynamic, parameters: shown });
  return (
    <form
      className="flex flex-col gap-4"
      onSubmit={(event) => {
        event.preventDefault();
        onBuild(
          (shown ?? []).map((parameter) => ({
            name: parameter.name,
            value: dynamic.valueOf(parameter),
          })),
        );
      }}
    >
      <div>
        <h2 className="font-semibold">Build options</h2>
        <p className="text-sm text-muted">These values apply to this build only.</p>
      </div>
      {shown === null ? (
        <SkeletonRows rows={1} />
      ) : (
        shown.map((parameter) => (
          <ParameterField
            key={parameter.name}
            parameter={parameter}
            value={dynamic.valueOf(parameter)}
            onChange={(value) => dynamic.choose({ [parameter.name]: value })}
          />
        ))
      )}
      <Button
        type="submit"
        variant="primary"
        data-testid="build-parameters-submit"
        disabled={shown === null || invalid}
        title={invalid ? FIX_PARAMETERS : undefined}
      >
        {verb}
      </Button>
    </form>
  );
}
