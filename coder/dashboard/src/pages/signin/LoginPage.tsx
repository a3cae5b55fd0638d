// Sign-in with a password or a provider. Returns to the page that required it.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { GitBranch, KeyRound } from "lucide-react";
import { useEffect } from "react";
import { Link, Navigate, useNavigate, useSearchParams } from "react-router";

import { post } from "../../api/client";
import { appearance, authMethods, hasFirstUser, me } from "../../api/queries/session";
import { safeImage } from "../../ui/Avatar";
import { Button, buttonClass } from "../../ui/Button";
import { Failure } from "../../ui/Failure";
import { cx } from "../../ui/cx";
import { TextField } from "../../ui/forms/Field";
import { useForm } from "../../ui/forms/form";
import { Loading } from "../../ui/Loading";
import { Notice } from "../../ui/Notice";
import { useTitle } from "../../ui/title";
import { SignInCard, useApplicationName } from "./SignInCard";
import { knownMessage } from "../../features/session/messages";
import { isPage, safeTarget } from "./target";

export function LoginPage() {
  const name = useApplicationName();
  useTitle(`Sign in to ${name}`);
  const [params] = useSearchParams();
  const target = safeTarget(params.get("redirect"));
  const message = knownMessage(params.get("message"));
  const user = useQuery(me);
  const first = useQuery(hasFirstUser);
  const methods = useQuery(authMethods).data;
  if (first.data === false) return <Navigate to="/setup" replace />;
  if (user.data)
    return isPage(target) ? <Navigate to={target} replace /> : <Redirect to={target} />;
  if (user.isPending || first.isPending) return <Loading />;
  if (user.isLoadingError)
    return (
      <SignInCard title="Sign in">
        <Failure error={user.error} retry={() => void user.refetch()} />
      </SignInCard>
    );

  const passwords = methods?.password.enabled ?? true;
  const redirect = params.get("redirect") ? `?redirect=${encodeURIComponent(target)}` : "";
  const terms = methods?.terms_of_service_url;
  const providers = methods && (methods.github.enabled || methods.oidc.enabled);
  return (
    <SignInCard
      title={`Sign in to ${name}`}
      foot={
        terms && /^https?:/i.test(terms) ? (
          <>
            By signing in you agree to the{" "}
            <a className="underline" href={terms} target="_blank" rel="noreferrer">
              terms of service
            </a>
            .
          </>
        ) : null
      }
    >
      {message ? <Notice kind="info" title={message} /> : null}
      {providers ? (
        <div className="flex flex-col gap-2">
          {methods.github.enabled ? (
            <a
              className={buttonClass("secondary")}
              href={`/api/v2/users/oauth2/github/callback${redirect}`}
            >
              <GitBranch aria-hidden="true" />
              Continue with GitHub
            </a>
          ) : null}
          {methods.oidc.enabled ? (
            <a className={buttonClass("secondary")} href={`/api/v2/users/oidc/callback${redirect}`}>
              {safeImage(methods.oidc.iconUrl) ? (
                <img src={methods.oidc.iconUrl} alt="" className="size-4" />
              ) : (
                <KeyRound aria-hidden="true" />
              )}
              {methods.oidc.signInText || "OpenID Connect"}
            </a>
          ) : null}
        </div>
      ) : null}
      {providers && passwords ? (
        <div
          className={cx(
            "flex items-center gap-3 text-sm text-muted before:h-px before:flex-1",
            "before:bg-line after:h-px after:flex-1 after:bg-line",
          )}
        >
          or
        </div>
      ) : null}
      {passwords ? <PasswordForm target={target} /> : null}
      {!passwords && !providers ? (
        <Notice kind="warning" title="Sign-in is not possible">
          Password sign-in is disabled and no provider is configured. Contact an administrator.
        </Notice>
      ) : null}
    </SignInCard>
  );
}

function PasswordForm({ target }: { target: string }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const form = useForm({ email: "", password: "" }, async (values) => {
    await post("/api/v2/users/login", values);
    // The CSRF token of this page belongs to no session: a full page load gets the one of the new
    // session.
    await queries.invalidateQueries({ queryKey: ["users"] });
    void queries.invalidateQueries({ queryKey: appearance.queryKey });
    if (isPage(target)) await navigate(target);
  });
  return (
    <form className="flex flex-col gap-4" onSubmit={form.submit}>
      {form.error ? <Failure error={form.error} /> : null}
      <TextField
        label="Email"
        type="email"
        placeholder="name@example.com"
        autoComplete="email"
        autoFocus
        required
        value={form.values.email}
        problem={form.problem("email")}
        onChange={(value) => form.set("email", value)}
      />
      <div className="flex flex-col gap-1">
        <TextField
          label="Password"
          type="password"
          autoComplete="current-password"
          required
          value={form.values.password}
          problem={form.problem("password")}
          onChange={(value) => form.set("password", value)}
        />
        <Link
          to="/reset-password"
          className="self-end text-sm text-muted hover:text-text hover:underline"
        >
          Forgot password?
        </Link>
      </div>
      <Button type="submit" variant="primary" busy={form.busy}>
        Sign in
      </Button>
    </form>
  );
}

function Redirect({ to }: { to: string }) {
  useEffect(() => {
    window.location.replace(to);
  }, [to]);
  return <Loading />;
}
