// Forgotten password: asks for a one-time code by mail.
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
import { Door } from "./Door";

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
      <Door
        title="Look into your mail"
        foot={
          <Link className="underline" to="/login">
            Back to signing in
          </Link>
        }
      >
        {/* The same whether the account exists or not: the page must not tell who has one. */}
        <Notice kind="good" title={`If ${sent} has an account here, a code is on its way.`}>
          It can be used once and for a short time.
        </Notice>
        <ButtonLink look="primary" to={`/reset-password/change?email=${encodeURIComponent(sent)}`}>
          I have a code
        </ButtonLink>
        <Button onClick={() => setSent("")}>Send another</Button>
      </Door>
    );
  }
  return (
    <Door
      title="Reset your password"
      description="A one-time code is sent to your address."
      foot={
        <Link className="underline" to="/login">
          Back to signing in
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
        <Button type="submit" look="primary" busy={form.busy}>
          Reset password
        </Button>
      </form>
    </Door>
  );
}

/** A form that promises a code which never comes would be worse than none. */
function NoMail() {
  return (
    <Door
      title="Reset your password"
      foot={
        <Link className="underline" to="/login">
          Back to signing in
        </Link>
      }
    >
      <Notice kind="info" title="This deployment sends no mail, so no code can reach you.">
        <p>
          Ask somebody who administers it for a new password: they make one under Users, and you
          change it once you are in.
        </p>
        <p>
          Nobody left who can sign in? Whoever runs the server sets a password there:{" "}
          <code>coder reset-password USERNAME</code>
        </p>
      </Notice>
    </Door>
  );
}
