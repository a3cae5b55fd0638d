// What is done to one account: changed, given a new password, suspended, activated, deleted.
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
      toast.done("Successfully updated the user.");
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
          <Button type="submit" form={id} look="primary" busy={form.busy}>
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
          hint="Part of the addresses of their workspaces: links to the old name stop working."
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
  const saved = useRef(false); // the question closes then, the password stays
  const shown = <CodeBox label="New password" command={password} />;
  if (done) {
    return (
      <Dialog
        open
        held
        onClose={onClose}
        title={`The new password of ${user.username}`}
        actions={
          <Button look="primary" onClick={onClose}>
            I have saved it
          </Button>
        }
      >
        <div className="flex flex-col gap-3">
          <p className="text-muted">
            Send it to them; they can change it in their own settings. It is not shown again.
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
        toast.done("Successfully updated the user password.");
        setDone(true);
      }}
      extra={shown}
    >
      <p>
        Their old password stops working and they are signed out everywhere. This is the one to send
        them instead.
      </p>
    </Confirm>
  );
}

/** A lost laptop of somebody who cannot end its session themselves. */
function EndSessions({ user, onClose }: Props) {
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      title={`Sessions of ${user.username}`}
      description="Suspending ends all of them, and tokens and devices besides."
      actions={<Button onClick={onClose}>Close</Button>}
    >
      <Sessions of={user} />
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
          They can no longer sign in, and their sessions and tokens end at once. Their workspaces
          stay as they are; activating them gives everything back.
        </p>
      ) : (
        <p>They can sign in again, with the roles and workspaces they had.</p>
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
        toast.done("Successfully deleted the user.");
        await changed();
      }}
    >
      <p>
        The account, its keys, tokens and secrets are gone for good. It is refused while they have
        workspaces: delete those first. To lock somebody out for a while, suspend them.
      </p>
    </Confirm>
  );
}
