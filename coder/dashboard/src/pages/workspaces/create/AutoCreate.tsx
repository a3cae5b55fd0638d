// The confirmation before a link creates a workspace.
import type { Preset, PreviewParameter, Template } from "../../../api/types";
import { Confirm } from "../../../ui/Confirm";
import { type DynamicParameters } from "../../../features/parameter/dynamic-parameters";

interface AutoCreateProps {
  open: boolean;
  template: Template;
  name: string;
  /** The query of `match`: an existing workspace that it finds is opened. */
  match: string;
  preset: Preset | null;
  dynamic: DynamicParameters;
  onClose: () => void;
  onConfirm: () => Promise<void>;
}

// Opening a link must not be enough to spend a user's resources. The confirmed values are exactly
// those that are sent, whether the link, a preset or the template set them.
export function AutoCreate({
  open,
  template,
  name,
  match,
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
      title={`Create workspace ${name}?`}
      confirm="Confirm and create"
      onConfirm={onConfirm}
    >
      <p>
        The link you opened creates a workspace from the template{" "}
        <strong>{template.display_name || template.name}</strong>
        {preset ? (
          <>
            {" "}
            with the preset <strong>{preset.Name}</strong>
          </>
        ) : null}
        {match ? (
          <>
            , or opens the workspace that <code>{match}</code> finds
          </>
        ) : null}
        . Continue only if you trust the source of the link.
      </p>
      {parameters.length > 0 ? (
        <ul
          aria-label="Parameters"
          tabIndex={0}
          className="max-h-[45dvh] list-disc overflow-y-auto pl-5"
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
