// Creation of an account: identity and sign-in method.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useNavigate } from "react-router";

import { post, put } from "../../api/client";
import { usePermissions } from "../../api/permissions";
import { siteRoles } from "../../api/queries/people";
import { authMethods, organizations } from "../../api/queries/session";
import type { AuthMethods, User } from "../../api/types";
import { Button, ButtonLink } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { Failure, LoadFailure } from "../../ui/Failure";
import { Combobox, type Choice } from "../../ui/forms/Combobox";
import { Checkbox } from "../../ui/forms/Toggle";
import { TextField } from "../../ui/forms/Field";
import { useForm } from "../../ui/forms/form";
import { Notice } from "../../ui/Notice";
import { Narrow, PageHead, Stack } from "../../ui/Page";
import { CodeBox } from "../../ui/text/CodeBox";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { PermissionDenied } from "../../ui/PermissionDenied";
import { randomPassword, SITE_ROLE_HINTS } from "../../features/person/roles";

const START = {
  username: "",
  name: "",
  email: "",
  login_type: "password",
  password: "",
  organization_ids: [] as string[],
  roles: [] as string[],
};
const LIST = "/deployment/users";

export function CreateUserPage() {
  useTitle("Create User");
  const may = usePermissions();
  const methods = useQuery(authMethods).data;
  const organizationList = useQuery(organizations);
  const orgs = organizationList.data ?? [];
  const navigate = useNavigate();
  const queries = useQueryClient();
  const defaultOrganizations = orgs.filter((org) => org.is_default).map((org) => org.id);
  const [generated, setGenerated] = useState("");
  const [createdUser, setCreatedUser] = useState<{ username: string; password: string } | null>(
    null,
  );
  const roleList = useQuery({ ...siteRoles, enabled: may.updateUsers });
  const assignable = (roleList.data ?? []).filter((role) => role.assignable);
  const form = useForm(START, async ({ roles, ...values }) => {
    const service = values.login_type === "service";
    // A quick user must not be rejected because of data that is still loading.
    const all = await queries.ensureQueryData(organizations);
    const first = all.filter((org) => org.is_default).map((org) => org.id);
    const user = await post<User>("/api/v2/users", {
      ...values,
      organization_ids: values.organization_ids.length > 0 ? values.organization_ids : first,
      user_status: null,
      ...(service
        ? { login_type: "none", service_account: true, email: "", password: "" }
        : values.login_type === "password"
          ? {}
          : { password: "" }),
    });
    toast.done("User created successfully.");
    // The account exists even if assigning its roles failed: submitting the form again would be
    // rejected.
    if (roles.length > 0)
      await put(`/api/v2/users/${user.id}/roles`, { roles }).catch((error: unknown) =>
        toast.failed(`${values.username} was created, but without the roles you chose`, error),
      );
    await queries.invalidateQueries({ queryKey: ["users"] });
    if (values.login_type === "password" && values.password === generated)
      setCreatedUser({ username: values.username, password: generated });
    else await navigate(LIST);
  });
  if (may.known && !may.createUser) return <PermissionDenied subject="the form for new users" />;
  if (createdUser) return <Made {...createdUser} />;
  const { values, set, problem } = form;
  const generate = () => {
    const password = randomPassword();
    setGenerated(password);
    set("password", password);
  };
  const picked =
    values.organization_ids.length > 0 ? values.organization_ids : defaultOrganizations;
  return (
    <Narrow>
      <PageHead title="Create user" crumbs={[["Users", LIST], ["Create"]]} />
      <form onSubmit={form.submit} aria-label="Create user">
        <Stack>
          {form.error ? <Failure error={form.error} /> : null}
          <Section title="Sign-in method">
            <Combobox
              label="Login type"
              testId="login-type-input"
              value={values.login_type}
              onChange={(value) => set("login_type", value)}
              options={loginTypes(methods)}
            />
          </Section>
          <Section title="Details">
            <Stack>
              <TextField
                label="Username"
                autoFocus
                required
                autoComplete="off"
                hint="Letters, digits and hyphens. Used in the URLs of their workspaces."
                value={values.username}
                problem={problem("username")}
                onChange={(value) => set("username", value)}
              />
              <TextField
                label="Full name"
                autoComplete="off"
                value={values.name}
                problem={problem("name")}
                onChange={(value) => set("name", value)}
              />
              {values.login_type === "service" ? null : (
                <TextField
                  label="Email"
                  type="email"
                  required
                  autoComplete="off"
                  value={values.email}
                  problem={problem("email")}
                  onChange={(value) => set("email", value)}
                />
              )}
              {values.login_type === "password" ? (
                <TextField
                  label="Password"
                  name="password"
                  required
                  autoComplete="new-password"
                  spellCheck={false}
                  hint="Required for the first sign-in."
                  value={values.password}
                  problem={problem("password")}
                  onChange={(value) => set("password", value)}
                  control={<Button onClick={generate}>Generate</Button>}
                />
              ) : null}
            </Stack>
          </Section>
          <LoadFailure query={organizationList} title="Failed to load the organizations" />
          {orgs.length > 1 ? (
            <Section
              title="Organizations"
              description="Organizations give access to their templates and hold the user’s workspaces."
            >
              <Stack className="gap-2.5">
                {orgs.map((org) => (
                  <Checkbox
                    key={org.id}
                    label={org.display_name || org.name}
                    checked={picked.includes(org.id)}
                    onChange={(on) =>
                      set(
                        "organization_ids",
                        on ? [...picked, org.id] : picked.filter((id) => id !== org.id),
                      )
                    }
                  />
                ))}
              </Stack>
            </Section>
          ) : null}
          <LoadFailure query={roleList} title="Failed to load the roles" />
          {assignable.length > 0 ? (
            <Section
              title="Roles"
              description="Site-wide permissions. Everyone is also a Member: members can use what is shared with them."
            >
              <Stack className="gap-2.5">
                {assignable.map((role) => (
                  <Checkbox
                    key={role.name}
                    label={role.display_name || role.name}
                    hint={SITE_ROLE_HINTS[role.name]}
                    checked={values.roles.includes(role.name)}
                    onChange={(on) =>
                      set(
                        "roles",
                        on
                          ? [...values.roles, role.name]
                          : values.roles.filter((name) => name !== role.name),
                      )
                    }
                  />
                ))}
              </Stack>
            </Section>
          ) : null}
          <div className="flex justify-end gap-2">
            <ButtonLink to={LIST}>Cancel</ButtonLink>
            <Button type="submit" variant="primary" busy={form.busy}>
              Save
            </Button>
          </div>
        </Stack>
      </form>
    </Narrow>
  );
}

/**
 * A generated password is known to no user yet: it is shown until the administrator confirms that
 * it is saved.
 */
function Made({ username, password }: { username: string; password: string }) {
  useEffect(() => {
    window.scrollTo(0, 0);
  }, []); // the form is longer
  return (
    <Narrow>
      <PageHead title={`User ${username} created`} crumbs={[["Users", LIST], ["Create"]]} />
      <Section title="Password">
        <Stack>
          <Notice kind="warning" title="Copy the password now. It is not shown again.">
            Send it over a secure channel. The user signs in at{" "}
            <strong>{window.location.origin}</strong> and can change it in their settings.
          </Notice>
          <CodeBox
            label={`Password of ${username}`}
            command={password}
            secret
            testId="new-password"
          />
          <div className="flex justify-end">
            <ButtonLink variant="primary" to={LIST}>
              I have saved it
            </ButtonLink>
          </div>
        </Stack>
      </Section>
    </Narrow>
  );
}

/** The sign-in methods configured on this server, and those that are always available. */
function loginTypes(methods: AuthMethods | undefined): Choice[] {
  return [
    {
      value: "password",
      text: "Password",
      hint: "You choose the first password; the user can change it.",
    },
    ...(methods?.oidc.enabled
      ? [
          {
            value: "oidc",
            text: methods.oidc.signInText || "OpenID Connect",
            hint: "Through the organization's identity provider.",
          },
        ]
      : []),
    ...(methods?.github.enabled
      ? [{ value: "github", text: "GitHub", hint: "With their GitHub account." }]
      : []),
    {
      value: "service",
      text: "Service account",
      hint: "For programs: no email address, sign-in with tokens only.",
    },
  ];
}
