import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState, type FormEvent } from "react";
import { Navigate, useNavigate, useSearchParams } from "react-router";

import { ApiError, post } from "../api/client";
import { authMethods, hasFirstUser, me } from "../api/queries";
import { Field } from "../components/Field";
import { Loading } from "../components/Loading";
import { Notice } from "../components/Notice";
import { useTitle } from "../components/title";

export function LoginPage() {
  useTitle("Sign in to Coder");
  const [params] = useSearchParams();
  const target = safeTarget(params.get("redirect"));
  const user = useQuery(me);
  const first = useQuery(hasFirstUser);
  const methods = useQuery(authMethods);
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [form, setForm] = useState({ email: "", password: "" });
  const [error, setError] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);
  if (first.data === false) return <Navigate to="/setup" replace />;
  if (user.data) return isPage(target) ? <Navigate to={target} replace /> : <Leave to={target} />;
  if (user.isPending || first.isPending) return <Loading />;

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await post("/api/v2/users/login", form);
      await queries.invalidateQueries({ queryKey: ["users"] });
      if (isPage(target)) void navigate(target);
    } catch (caught) {
      setError(caught instanceof ApiError ? caught : new ApiError(0, { message: String(caught) }));
    } finally {
      setBusy(false);
    }
  };
  const passwords = methods.data?.password.enabled ?? true;
  return (
    <main className="door">
      <form className="card" onSubmit={(event) => void submit(event)} aria-labelledby="title">
        <img src="/favicon.svg" alt="" width={44} height={44} />
        <h1 id="title">Sign in</h1>
        {params.get("message") ? <Notice kind="info" title={params.get("message") ?? ""} /> : null}
        {error ? <Notice kind="error" title={error.message}>{error.detail}</Notice> : null}
        {passwords ? (
          <>
            <Field label="Email" type="email" autoComplete="email" required value={form.email}
              onChange={(email) => setForm({ ...form, email })} />
            <Field label="Password" type="password" autoComplete="current-password" required value={form.password}
              onChange={(password) => setForm({ ...form, password })} />
            <button type="submit" className="primary" disabled={busy}>{busy ? "Signing in…" : "Sign in"}</button>
          </>
        ) : <Notice kind="info" title="Password sign-in is switched off on this deployment." />}
        {methods.data?.github.enabled ? (
          <a className="button" href="/api/v2/users/oauth2/github/callback">Continue with GitHub</a>
        ) : null}
        {methods.data?.oidc.enabled ? (
          <a className="button" href="/api/v2/users/oidc/callback">{methods.data.oidc.signInText || "OpenID Connect"}</a>
        ) : null}
      </form>
    </main>
  );
}

// What the server answers itself: applications of workspaces, and the way to those with a host of their own.
const SERVED = /^\/(?:api\/|oauth2\/|(?:@|%40)[^/]+\/[^/]+\/apps\/)/;

function isPage(target: string): boolean {
  return !SERVED.test(target);
}

function Leave({ to }: { to: string }) {
  useEffect(() => window.location.replace(to), [to]);
  return <Loading />;
}

// Only addresses of this site: a link must not be able to send somebody elsewhere after signing in.
function safeTarget(redirect: string | null): string {
  if (redirect?.startsWith("/")) {
    try {
      // As the browser will read it: it drops tabs and line breaks, and takes backslashes for slashes.
      const place = new URL(redirect, window.location.origin);
      const path = place.pathname + place.search + place.hash;
      if (place.origin === window.location.origin && !path.startsWith("//")) return path;
    } catch {
      // no address at all
    }
  }
  return "/workspaces";
}
