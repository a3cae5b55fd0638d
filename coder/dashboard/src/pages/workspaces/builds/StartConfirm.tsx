// The question before a build whose template has values for one build, or asks for new values.
import { useNavigate } from "react-router";

import type { Workspace } from "../../../api/types";
import { Button } from "../../../ui/Button";
import { Dialog } from "../../../ui/Dialog";
import { valuesPath, workspacePath } from "../paths";

interface StartConfirmProps {
  open: boolean;
  workspace: Workspace;
  /** What Continue does: "start" or "restart". */
  verb: "start" | "restart";
  onClose: () => void;
  onContinue: () => void;
}

export function StartConfirm({ open, workspace, verb, onClose, onContinue }: StartConfirmProps) {
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title="Ephemeral parameters detected"
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            data-testid="confirm-button"
            onClick={() => {
              onClose();
              onContinue();
            }}
          >
            Continue
          </Button>
          <ToParameters
            to={`${workspacePath(workspace)}/settings/parameters`}
            testId="workspace-parameters"
          />
        </>
      }
    >
      <p>
        The template has parameters that apply to one build only. Continue to {verb} with their
        defaults, or set them first on the page of the workspace’s parameters.
      </p>
    </Dialog>
  );
}

/** The active version asks for values that the workspace has none of. */
export function ValuesConfirm({
  open,
  workspace,
  onClose,
}: Omit<StartConfirmProps, "verb" | "onContinue">) {
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title="The new version needs more values"
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <ToParameters to={valuesPath(workspace, workspace.template_active_version_id)} />
        </>
      }
    >
      <p>
        The active version has parameters that this workspace has no value for, or no longer offers
        the chosen option. Nothing has changed yet: the update starts from the parameters page.
      </p>
    </Dialog>
  );
}

function ToParameters({ to, testId }: { to: string; testId?: string }) {
  const navigate = useNavigate();
  return (
    <Button variant="primary" data-testid={testId} onClick={() => void navigate(to)}>
      Go to workspace parameters
    </Button>
  );
}
