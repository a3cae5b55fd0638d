// The user's sign-in method: a password, or a provider in place of it.
import { useQuery } from "@tanstack/react-query";
import { KeyRound, ShieldCheck } from "lucide-react";
import { useState } from "react";

import { post, put } from "../../api/client";
import { loginType } from "../../api/queries/account";
import { authMethods } from "../../api/queries/session";
import type { AuthMethods, OAuthConversionResponse } from "../../api/types";
import { useMe } from "../../features/session/useMe";
import { Avatar } from "../../ui/Avatar";
import { Button } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { Confirm } from "../../ui/Confirm";
import { Failure } from "../../ui/Failure";
import { TextField } from "../../ui/forms/Field";
import { useForm } from "../../ui/forms/form";
import { SkeletonRows } from "../../ui/Loading";
import { Notice } from "../../ui/Notice";
import { PageHead, Stack, TextLink } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { PASSWORD_CHANGED } from "../../features/session/messages";
import { Sessions } from "../../features/person/Sessions";

export function SecurityPage() {
  useTitle("Settings");
  const kind = useQuery(loginType);
  const methods = useQuery(authMethods);
  return (
    <>
      <PageHead title="Security" description="How you sign in, and how to revoke access." />
      {kind.isPending || methods.isPending ? <SkeletonRows rows={3} /> : null}
      {kind.isError ? <Failure error={kind.error} retry={() => void kind.refetch()} /> : null}
      {methods.isError ? (
        <Failure error={methods.error} retry={() => void methods.refetch()} />
      ) : null}
      {kind.data && methods.data ? (
        <Stack>
          {kind.data.login_type === "password" ? (
            <PasswordForm />
          ) : (
            <ExternalSignIn kind={kind.data.login_type} methods={methods.data} />
          )}
          {kind.data.login_type === "password" ? <ConvertToSso methods={methods.data} /> : null}
          <Sessions />
          <Section title="Lost a device?" description="Revoke access step by step.">
            <ul className="flex list-disc flex-col gap-1.5 pl-5 text-base">
              <li>
                A laptop or a browser: end its sessions above. A browser and a CLI on the same
                machine have separate sessions. Each is signed out at once, and its connections
                close.
              </li>
              {kind.data.login_type === "password" ? (
                <li>
                  All sessions and tokens: change your password. This also signs out this browser.
                  WireGuard devices have keys of their own and stay connected:{" "}
                  <TextLink to="/settings/devices">remove them</TextLink> separately.
                </li>
              ) : null}
              <li>
                A token in a script: <TextLink to="/settings/tokens">delete the token</TextLink>;
                other tokens stay valid.
              </li>
              <li>
                A phone or a laptop with WireGuard:{" "}
                <TextLink to="/settings/devices">remove the device</TextLink>; it disconnects within
                a second.
              </li>
            </ul>
          </Section>
        </Stack>
      ) : null}
    </>
  );
}

function PasswordForm() {
  const me = useMe();
  const form = useForm(
    { old_password: "", password: "", again: "" },
    async ({ old_password, password }) => {
      await put(`/api/v2/users/${me.id}/password`, { old_password, password });
      // The password change ended every session, including this one.
      window.location.assign(`/login?message=${encodeURIComponent(PASSWORD_CHANGED)}`);
    },
    (values) => ({
      ...(values.password === values.again ? {} : { again: "The passwords do not match." }),
    }),
  );
  const { values, set, problem } = form;
  return (
    <form onSubmit={form.submit}>
      <Section
        title="Password"
        description={
          <>
            Changing it signs you out everywhere: other browsers, CLI clients and tokens.{" "}
            <TextLink to="/settings/devices">WireGuard devices</TextLink> stay connected.
          </>
        }
      >
        <Stack>
          {form.error ? <Failure error={form.error} /> : null}
          <input
            type="email"
            className="sr-only"
            autoComplete="username"
            readOnly
            tabIndex={-1}
            value={me.email}
            aria-label="Account"
          />
          <TextField
            label="Old Password"
            type="password"
            autoComplete="current-password"
            required
            value={values.old_password}
            problem={problem("old_password")}
            onChange={(value) => set("old_password", value)}
          />
          <TextField
            label="New Password"
            type="password"
            autoComplete="new-password"
            required
            value={values.password}
            problem={problem("password")}
            onChange={(value) => set("password", value)}
          />
          <TextField
            label="Confirm Password"
            type="password"
            autoComplete="new-password"
            required
            value={values.again}
            problem={problem("again")}
            onChange={(value) => set("again", value)}
          />
          <div className="flex justify-end">
            <Button type="submit" variant="primary" icon={<KeyRound />} busy={form.busy}>
              Update password
            </Button>
          </div>
        </Stack>
      </Section>
    </form>
  );
}

function providersOf(
  methods: AuthMethods,
): { id: "github" | "oidc"; name: string; icon: string }[] {
  return [
    ...(methods.oidc.enabled
      ? [
          {
            id: "oidc" as const,
            name: methods.oidc.signInText || "OpenID Connect",
            icon: methods.oidc.iconUrl,
          },
        ]
      : []),
    ...(methods.github.enabled ? [{ id: "github" as const, name: "GitHub", icon: "" }] : []),
  ];
}

function ExternalSignIn({ kind, methods }: { kind: string; methods: AuthMethods }) {
  const name =
    kind === "none" ? null : (providersOf(methods).find((item) => item.id === kind)?.name ?? kind);
  return (
    <Section title="Single sign-on">
      <p className="flex items-center gap-2.5">
        <ShieldCheck className="size-5 text-good" aria-hidden="true" />
        {name ? (
          <>
            You sign in with <strong>{name}</strong>. This deployment stores no password for you.
          </>
        ) : (
          "This account cannot sign in interactively; it only works with tokens."
        )}
      </p>
    </Section>
  );
}

function ConvertToSso({ methods }: { methods: AuthMethods }) {
  const [to, setTo] = useState<ReturnType<typeof providersOf>[number] | null>(null);
  const [password, setPassword] = useState("");
  const providers = providersOf(methods);
  if (providers.length === 0) return null;
  const convert = async () => {
    if (!to) return;
    const answer = await post<OAuthConversionResponse>("/api/v2/users/me/convert-login", {
      to_type: to.id,
      password,
    });
    const back =
      to.id === "oidc" ? "/api/v2/users/oidc/callback" : "/api/v2/users/oauth2/github/callback";
    window.location.assign(
      `${back}?oidc_merge_state=${encodeURIComponent(answer.state_string)}&redirect=${encodeURIComponent("/settings/security")}`,
    );
  };
  return (
    <Section
      title="Single sign-on"
      description="Sign in with an account at another service instead of a password."
    >
      <div className="flex flex-wrap gap-2">
        {providers.map((item) => (
          <Button
            key={item.id}
            icon={<Avatar name={item.name} src={item.icon} size="xs" square />}
            onClick={() => {
              setPassword("");
              setTo(item);
            }}
          >
            Switch to {item.name}
          </Button>
        ))}
      </div>
      <Confirm
        open={to !== null}
        onClose={() => setTo(null)}
        title={`Switch to ${to?.name ?? ""}?`}
        confirm="Switch"
        onConfirm={convert}
        extra={
          <TextField
            label="Confirm with your password"
            type="password"
            required
            autoComplete="current-password"
            value={password}
            onChange={setPassword}
          />
        }
      >
        <Notice
          kind="warning"
          title="Your password stops working, and only an administrator can switch you back."
        >
          Your account at {to?.name} must have the same email address.
        </Notice>
      </Confirm>
    </Section>
  );
}
