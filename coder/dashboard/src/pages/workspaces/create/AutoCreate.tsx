// The question before a link creates a workspace.
import type { Preset, PreviewParameter, Template } from "../../../api/types";
import { Confirm } from "../../../ui/Confirm";
import { type DynamicParameters } from "../../../features/parameter/dynamic-parameters";

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
export function AutoCreate({
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
