// Everything that acts for a user is revoked, after a list of the steps.
import { useQueryClient } from "@tanstack/react-query";

import type { User } from "../../../api/types";
import { Confirm } from "../../../ui/Confirm";
import { toast } from "../../../ui/toast";
import { revocation } from "./access";

export function RevokeAll({
  open,
  onClose,
  user,
  credentials,
}: {
  open: boolean;
  onClose: () => void;
  user: User;
  credentials: Parameters<typeof revocation>[1];
}) {
  const queries = useQueryClient();
  const steps = revocation(user, credentials);
  const revoke = async () => {
    try {
      for (const step of steps) await step.run();
    } finally {
      await queries.invalidateQueries({ queryKey: ["users"] }); // also after a failure: some steps are done
    }
    toast.done(`Access of ${user.username} revoked successfully.`);
  };
  return (
    <Confirm
      open={open}
      onClose={onClose}
      title={`Revoke everything of ${user.username}?`}
      confirm="Revoke everything"
      typed={user.username}
      typedLabel="Name of the user"
      onConfirm={revoke}
    >
      <p>This happens, in this order:</p>
      <ol aria-label="Steps" className="list-decimal pl-5">
        {steps.map((step) => (
          <li key={step.text} className="[overflow-wrap:anywhere]">
            {step.text}
          </li>
        ))}
      </ol>
      <p>
        Organizations, groups, shares and workspaces are kept: they have no effect while the account
        is suspended.
      </p>
    </Confirm>
  );
}
