// Shown when the session expires while a page is open: the user signs in on top of it, and their
// input is kept.
import { useQuery, useQueryClient } from "@tanstack/react-query";

import { post } from "../../api/client";
import { authMethods } from "../../api/queries/session";
import type { User } from "../../api/types";
import { Button } from "../../ui/Button";
import { Dialog } from "../../ui/Dialog";
import { Failure } from "../../ui/Failure";
import { TextField } from "../../ui/forms/Field";
import { useForm } from "../../ui/forms/form";

export function SignInAgain({ user }: { user: User }) {
  const queries = useQueryClient();
  const methods = useQuery(authMethods).data;
  const check = () => void queries.invalidateQueries();
  const form = useForm({ password: "" }, async ({ password }) => {
    await post("/api/v2/users/login", { email: user.email, password });
    await queries.invalidateQueries();
  });
  return (
    <Dialog
      open
      covers
      onClose={check}
      title="Your session has ended"
      description="Sign in again to continue. Your input on this page is kept."
    >
      <form className="flex flex-col gap-3" onSubmit={form.submit}>
        {form.error ? <Failure error={form.error} /> : null}
        {methods?.password.enabled === false ? null : (
          <>
            <input
              type="email"
              autoComplete="username"
              className="sr-only"
              tabIndex={-1}
              readOnly
              value={user.email}
              aria-label="Account"
            />
            <TextField
              label={`Password of ${user.email}`}
              type="password"
              autoComplete="current-password"
              required
              value={form.values.password}
              onChange={(value) => form.set("password", value)}
            />
            <Button type="submit" variant="primary" busy={form.busy}>
              Sign in
            </Button>
          </>
        )}
        <div className="flex flex-wrap items-center gap-2 text-sm text-muted">
          <a
            className="underline"
            href="/login?redirect=%2Finstall"
            target="_blank"
            rel="noreferrer"
          >
            Sign in another way in a new tab
          </a>
          <Button size="sm" onClick={check}>
            I have signed in
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
