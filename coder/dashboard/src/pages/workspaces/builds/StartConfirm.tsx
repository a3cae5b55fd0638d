// The question before a start whose template has values for one build.
import type { Workspace } from "../../../api/types";
import { Confirm } from "../../../ui/Confirm";
import { TextLink } from "../../../ui/Page";
import { workspacePath } from "../paths";

interface StartConfirmProps {
  open: boolean;
  workspace: Workspace;
  onClose: () => void;
  onStart: () => void;
}

export function StartConfirm({ open, workspace, onClose, onStart }: StartConfirmProps) {
  return (
    <Confirm
      open={open}
      onClose={onClose}
      danger={false}
      title="Ephemeral parameters detected"
      confirm="Continue"
      onConfirm={async () => {
        onStart();
      }}
    >
      <p>
        The template has parameters that apply to one build only. Continue to start with their
        defaults, or set them first:
      </p>
      <p>
        <TextLink to={`${workspacePath(workspace)}/settings/parameters`}>
          Go to workspace parameters
        </TextLink>
      </p>
    </Confirm>
  );
}
