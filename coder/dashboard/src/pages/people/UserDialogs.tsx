// Actions on one account: edit, reset the password, suspend, activate, delete.
import { useQueryClient } from "@tanstack/react-query";
import { useId, useRef, useState } from "react";

import { get, put, remove } from "../../api/client";
import type { User } from "../../api/types";
import { Button } from "../../ui/Button";
import { CodeBox } from "../../ui/text/CodeBox";
import { FormProblems, useSettingsForm } from "../../ui/forms/conflict";
import { Confirm } from "../../ui/Confirm";
import { Dialog } from "../../ui/Dialog";
import { TextField } from "../../ui/forms/Field";
import { toast } from "../../ui/toast";
import { Sessions } from "../../features/person/Sessions";
import { randomPassword } from "../../features/person/roles";

export type UserAction = "edit" | "password" | "sessions" | "suspend" | "activate" | "delete";

interface Props {
  user: User;
  action: UserAction;
  onClose: () => void;
}

export function UserDialog(props: Props) {
  switch (props.action) {
    case "edit":
      return <EditUser {...props} />;
    case "password":
      return <ResetPassword {...props} />;
    case "sessions":
      return <EndSessions {...props} />;
    case "delete":
      return <DeleteUser {...props} />;
    default:
      return <ChangeStatus {...props} />;
  }
}

function useUsersChanged() {
  const queries = useQueryClient();
  return () => queries.invalidateQueries({ queryKey: ["users"] });
}

const fields = (user: User) => ({
  username: user.username,
  name: user.name ?? "",
  avatar_url: user.avatar_url ?? "",
});

function EditUser({ user, onClose }: Props) {
  const changed = useUsersChanged();
  const id = useId();
  const form = useSettingsForm(
    () => get<User>(`/api/v2/users/${user.id}`),
    fields,
    fields(user),
    async (values) => {
      await put(`/api/v2/users/${user.id}/profile`, values);
      toast.done("User updated successfully.");
      await changed();
      onClose();
    },
  );
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Edit ${user.username}`}
      description={user.email}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" form={id} variant="primary" busy={form.busy}>
            Save
          </Button>
        </>
      }
    >
      <form id={id} className="flex flex-col gap-4" onSubmit={form.submit}>
        <FormProblems form={form} />
        <TextField
          label="Username"
          required
          hint="Used in the URLs of their workspaces: links with the old name stop working."
          value={form.values.username}
          problem={form.problem("username")}
          onChange={(value) => form.set("username", value)}
        />
        <TextField
          label="Full name"
          value={form.values.name}
          problem={form.problem("name")}
          onChange={(value) => form.set("name", value)}
        />
      </form>
    </Dialog>
  );
}

function ResetPassword({ user, onClose }: Props) {
  const [password] = useState(randomPassword);
  const [done, setDone] = useState(false);
  const saved = useRef(false); // the confirmation closes, the password stays
  const shown = <CodeBox label="New password" command={password} />;
  if (done) {
    return (
      <Dialog
        open
        held
        onClose={onClose}
        title={`New password of ${user.username}`}
        actions={
          <Button variant="primary" onClick={onClose}>
            I have saved it
          </Button>
        }
      >
        <div className="flex flex-col gap-3">
          <p className="text-muted">
            Send it to the user, who can change it in their settings. It is not shown again.
          </p>
          {shown}
        </div>
      </Dialog>
    );
  }
  return (
    <Confirm
      open
      onClose={() => {
        if (!saved.current) onClose();
      }}
      title={`Reset the password of ${user.username}?`}
      confirm="Reset password"
      danger={false}
      onConfirm={async () => {
        await put(`/api/v2/users/${user.id}/password`, { old_password: "", password });
        saved.current = true;
        toast.done("Password updated successfully.");
        setDone(true);
      }}
      extra={shown}
    >
      <p>
        The old password stops working and the user is signed out everywhere. Send them this
        password instead.
      </p>
    </Confirm>
  );
}

/** Ends the sessions of a lost laptop whose user cannot do so themselves. */
function EndSessions({ user, onClose }: Props) {
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      title={`Sessions of ${user.username}`}
      description="Suspending the user also ends all sessions, tokens and devices."
      actions={<Button onClick={onClose}>Close</Button>}
    >
      <Sessions user={user} />
    </Dialog>
  );
}

function ChangeStatus({ user, action, onClose }: Props) {
  const changed = useUsersChanged();
  const suspend = action === "suspend";
  return (
    <Confirm
      open
      onClose={onClose}
      title={suspend ? `Suspend ${user.username}?` : `Activate ${user.username}?`}
      confirm={suspend ? "Suspend" : "Activate"}
      danger={suspend}
      onConfirm={async () => {
        await put(`/api/v2/users/${user.id}/status/${action}`, {});
        toast.done(
          suspend ? "Successfully suspended the user." : "Successfully activated the user.",
        );
        await changed();
      }}
    >
      {suspend ? (
        <p>
          The user can no longer sign in, and all their sessions and tokens end at once. Their
          workspaces are kept; activating the user restores access.
        </p>
      ) : (
        <p>The user can sign in again, with their previous roles and workspaces.</p>
      )}
    </Confirm>
  );
}

function DeleteUser({ user, onClose }: Props) {
  const changed = useUsersChanged();
  return (
    <Confirm
      open
      onClose={onClose}
      title={`Delete ${user.username}?`}
      confirm="Delete"
      typed={user.username}
      typedLabel="Name of the user to delete"
      onConfirm={async () => {
        await remove(`/api/v2/users/${user.id}`);
        toast.done("User deleted successfully.");
        await changed();
      }}
    >
      <p>
        The account and its keys, tokens and secrets are deleted permanently. Delete its workspaces
        first: a user with workspaces cannot be deleted. To block access temporarily, suspend the
        user instead.
      </p>
    </Confirm>
  );
}
