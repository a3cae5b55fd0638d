// Password reset: requests a one-time code by mail.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "react-router";

import { post } from "../../api/client";
import { passcodeDelivery } from "../../api/queries/session";
import { Button, ButtonLink } from "../../ui/Button";
import { Failure } from "../../ui/Failure";
import { TextField } from "../../ui/forms/Field";
import { useForm } from "../../ui/forms/form";
import { Loading } from "../../ui/Loading";
import { Notice } from "../../ui/Notice";
import { useTitle } from "../../ui/title";
import { SignInCard } from "./SignInCard";

export function ResetPasswordPage() {
  useTitle("Reset Password");
  const [sent, setSent] = useState("");
  const form = useForm({ email: "" }, async ({ email }) => {
    await post("/api/v2/users/otp/request", { email });
    setSent(email);
  });
  const delivery = useQuery(passcodeDelivery);
  if (delivery.isPending) return <Loading />;
  if (delivery.data?.available === false) return <NoMail />;
  if (sent !== "") {
    return (
      <SignInCard
        title="Check your email"
        foot={
          <Link className="underline" to="/login">
            Back to sign-in
          </Link>
        }
      >
        {/* The same text whether the account exists or not: the page must not reveal who has an
           account. */}
        <Notice kind="good" title={`If ${sent} has an account, a code was sent to it.`}>
          The code can be used once and expires soon.
        </Notice>
        <ButtonLink
          variant="primary"
          to={`/reset-password/change?email=${encodeURIComponent(sent)}`}
        >
          Enter code
        </ButtonLink>
        <Button onClick={() => setSent("")}>Send another code</Button>
      </SignInCard>
    );
  }
  return (
    <SignInCard
      title="Reset your password"
      description="We send a one-time code to your email address."
      foot={
        <Link className="underline" to="/login">
          Back to sign-in
        </Link>
      }
    >
      <form className="flex flex-col gap-4" onSubmit={form.submit}>
        {form.error ? <Failure error={form.error} /> : null}
        <TextField
          label="Email"
          type="email"
          autoComplete="email"
          required
          autoFocus
          value={form.values.email}
          problem={form.problem("email")}
          onChange={(value) => form.set("email", value)}
        />
        <Button type="submit" variant="primary" busy={form.busy}>
          Reset password
        </Button>
      </form>
    </SignInCard>
  );
}

/** A form that promises a code would be misleading if the server cannot send mail. */
function NoMail() {
  return (
    <SignInCard
      title="Reset your password"
      foot={
        <Link className="underline" to="/login">
          Back to sign-in
        </Link>
      }
    >
      <Notice kind="info" title="This deployment sends no mail, so it cannot send you a code">
        <p>
          Ask an administrator to set a new password under Users. You can change it after you sign
          in.
        </p>
        <p>
          If no administrator can sign in, reset a password on the server with{" "}
          <code>coder reset-password USERNAME</code>
        </p>
      </Notice>
    </SignInCard>
  );
}
