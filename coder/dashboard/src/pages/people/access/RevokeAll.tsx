// Everything that acts for a user is revoked, after a list of the steps.
import { useQueryClient } from "@tanstack/react-query";

import type { User } from "../../../api/types";
import { Confirm } from "../../../ui/Confirm";
import { Notice } from "../../../ui/Notice";
import { toast } from "../../../ui/toast";
import { revocation, revoke, type Credentials } from "./access";

export function RevokeAll({
  open,
  onClose,
  user,
  credentials,
}: {
  open: boolean;
  onClose: () => void;
  user: User;
  credentials: Credentials;
}) {
  const queries = useQueryClient();
  const { steps, hidden } = revocation(user, credentials);
  const run = async () => {
    const left = await revoke(steps);
    await queries.invalidateQueries({ queryKey: ["users"] }); // also after a failure: some steps are done
    if (left.length > 0)
      throw new Error(
        `Not revoked: ${left.map(({ name, reason }) => `${name} (${reason})`).join(", ")}. The rest is done. ` +
          "Confirm again to repeat what is left.",
      );
    if (hidden.length === 0) toast.done(`Access of ${user.username} revoked successfully.`);
    else
      toast.done(
        `Access of ${user.username} revoked, except ${hidden.map(({ name }) => name).join(", ")}.`,
      );
  };
  return (
    <Confirm
      open={open}
      onClose={onClose}
      title={`Revoke everything of ${user.username}?`}
      confirm="Revoke everything"
      typed={user.username}
      typedLabel="Name of the user"
      onConfirm={run}
    >
      {steps.length === 0 ? (
        <p>Nothing is left to revoke.</p>
      ) : (
        <>
          <p>This happens, in this order:</p>
          <ol aria-label="Steps" className="list-decimal pl-5">
            {steps.map((step) => (
              <li key={step.text} className="[overflow-wrap:anywhere]">
                {step.text}
              </li>
            ))}
          </ol>
        </>
      )}
      {hidden.length > 0 ? (
        <Notice
          kind="warning"
          title="Not included, and without effect while the account is suspended"
        >
          {hidden.map(({ name, reason }) => (
            <p key={name}>
              {name}: {reason}
            </p>
          ))}
        </Notice>
      ) : null}
      <p>
        Organizations, groups, shares and workspaces are kept: they have no effect while the account
        is suspended.
      </p>
    </Confirm>
  );
}
