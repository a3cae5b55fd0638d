// The first user of a new deployment.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Navigate, useNavigate } from "react-router";

import { post } from "../../api/client";
import { appearance, authMethods, hasFirstUser } from "../../api/queries/session";
import { builderBases } from "../../api/queries/templates";
import { Button, buttonClass } from "../../ui/Button";
import { Failure } from "../../ui/Failure";
import { TextField } from "../../ui/forms/Field";
import { useForm } from "../../ui/forms/form";
import { Loading } from "../../ui/Loading";
import { toast } from "../../ui/toast";
import { useTitle } from "../../ui/title";
import { SignInCard } from "./SignInCard";

export function SetupPage() {
  useTitle("Set up your account");
  const first = useQuery(hasFirstUser);
  const methods = useQuery(authMethods).data;
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [done, setDone] = useState(false);
  const form = useForm({ email: "", username: "", password: "" }, async (values) => {
    const username = values.username || nameFrom(values.email);
    // If the account was created but the sign-in failed, do not create a second one.
    if (!done) await post("/api/v2/users/first", { ...values, username, name: "", trial: false });
    setDone(true);
    await post("/api/v2/users/login", { email: values.email, password: values.password });
    queries.clear();
    void queries.invalidateQueries({ queryKey: appearance.queryKey });
    toast.done(`User "${username}" created successfully.`);
    // Without a template there is nothing else to do.
    const bases = await queries.fetchQuery(builderBases).catch(() => null);
    await navigate(bases?.length ? "/templates/new/builder" : "/templates");
  });
  if (first.data === true && !form.busy && !done) return <Navigate to="/login" replace />;
  if (first.isPending) return <Loading />;
  return (
    <SignInCard
      title="Welcome to Coder"
      description="Create the first account. It becomes the owner of this deployment."
    >
      {methods?.github.enabled ? (
        <a className={buttonClass("secondary")} href="/api/v2/users/oauth2/github/callback">
          Continue with GitHub
        </a>
      ) : null}
      <form className="flex flex-col gap-4" onSubmit={form.submit}>
        {form.error ? <Failure error={form.error} /> : null}
        <TextField
          label="Email"
          type="email"
          autoComplete="email"
          autoFocus
          required
          value={form.values.email}
          problem={form.problem("email")}
          onChange={(value) => form.set("email", value)}
        />
        <TextField
          label="Username"
          autoComplete="username"
          value={form.values.username}
          problem={form.problem("username")}
          placeholder={nameFrom(form.values.email)}
          hint="Optional. Letters, digits and hyphens; used in the URLs of your workspaces."
          onChange={(value) => form.set("username", value)}
        />
        <TextField
          label="Password"
          type="password"
          autoComplete="new-password"
          hint="Use a long password or several words; simple ones are rejected."
          required
          value={form.values.password}
          problem={form.problem("password")}
          onChange={(value) => form.set("password", value)}
        />
        <Button type="submit" variant="primary" busy={form.busy} data-testid="create">
          Create account
        </Button>
      </form>
    </SignInCard>
  );
}

export function nameFrom(email: string): string {
  return (email.split("@")[0] ?? "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 32);
}
