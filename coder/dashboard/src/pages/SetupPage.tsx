// The first user of a new deployment.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { Navigate, useNavigate } from "react-router";

import { ApiError, post } from "../api/client";
import { hasFirstUser } from "../api/queries";
import { Field } from "../components/Field";
import { Loading } from "../components/Loading";
import { Notice } from "../components/Notice";
import { useTitle } from "../components/title";

export function SetupPage() {
  useTitle("Set up your account");
  const first = useQuery(hasFirstUser);
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [form, setForm] = useState({ email: "", username: "", password: "" });
  const [error, setError] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);
  if (first.data === true && !busy) return <Navigate to="/login" replace />;
  if (first.isPending) return <Loading />;

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const username = form.username || nameFrom(form.email);
      await post("/api/v2/users/first", { ...form, username, name: "", trial: false });
      await post("/api/v2/users/login", { email: form.email, password: form.password });
      queries.clear();
      void navigate("/workspaces");
    } catch (caught) {
      setError(caught instanceof ApiError ? caught : new ApiError(0, { message: String(caught) }));
      setBusy(false);
    }
  };
  const problem = (field: string) => error?.validations.find((item) => item.field === field)?.detail;
  return (
    <main className="door">
      <form className="card" onSubmit={(event) => void submit(event)} aria-labelledby="title">
        <img src="/favicon.svg" alt="" width={44} height={44} />
        <h1 id="title">Welcome to Coder</h1>
        <p className="faint">Create the first account. It will own this deployment.</p>
        {error ? <Notice kind="error" title={error.message}>{error.detail}</Notice> : null}
        <Field label="Email" type="email" autoComplete="email" required value={form.email} problem={problem("email")}
          onChange={(email) => setForm({ ...form, email })} />
        <Field label="Username" autoComplete="username" value={form.username} problem={problem("username")}
          placeholder={nameFrom(form.email)} onChange={(username) => setForm({ ...form, username })} />
        <Field label="Password" type="password" autoComplete="new-password" required value={form.password}
          problem={problem("password")} onChange={(password) => setForm({ ...form, password })} />
        <button type="submit" className="primary" disabled={busy}>{busy ? "Creating…" : "Create account"}</button>
      </form>
    </main>
  );
}

function nameFrom(email: string): string {
  return (email.split("@")[0] ?? "").toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 32);
}
