// A role: its name and a grid of its permissions. Built-in roles are read-only.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate, useParams } from "react-router";

import { get, post, put } from "../../api/client";
import { organizationRoles } from "../../api/queries/organizations";
import type { AssignableRoles, Permission } from "../../api/types";
import { Button } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { FormProblems, useSettingsForm } from "../../ui/forms/conflict";
import { Failure } from "../../ui/Failure";
import { TextField } from "../../ui/forms/Field";
import { SkeletonRows } from "../../ui/Loading";
import { Notice } from "../../ui/Notice";
import { PageHead, Stack } from "../../ui/Page";
import { TabPanel, Tabs } from "../../ui/Tabs";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { PermissionDenied } from "../../ui/PermissionDenied";
import { NotFoundPage } from "../../ui/NotFoundPage";
import {
  ACTION_TEXT,
  beyondGrid,
  byActions,
  grantedActions,
  GRID,
  isGiven,
  summary,
} from "../../features/organization/permission-grid";
import {
  useOrganization,
  type OrganizationView,
} from "../../features/organization/useOrganization";

const EMPTY: Pick<
  AssignableRoles,
  "name" | "display_name" | "organization_permissions" | "organization_member_permissions"
> = {
  name: "",
  display_name: "",
  organization_permissions: [],
  organization_member_permissions: [],
};

export function RoleEditorPage() {
  const { role: name } = useParams();
  const view = useOrganization();
  const roles = useQuery({
    ...organizationRoles(view?.organization.name ?? ""),
    enabled: view != null,
  });
  useTitle(name === undefined ? "Create Custom Role" : "Edit Custom Role");
  if (!view?.known || roles.isPending) return <SkeletonRows rows={4} />;
  if (roles.isLoadingError)
    return <Failure error={roles.error} retry={() => void roles.refetch()} />;
  if (name === undefined)
    return view.may.createRoles ? (
      <Editor view={view} role={EMPTY} create />
    ) : (
      <PermissionDenied subject="the form for new roles" />
    );
  const match = roles.data.find((role) => role.name === name);
  return match ? (
    <Editor
      key={name}
      view={view}
      role={match}
      readOnly={match.built_in || !view.may.updateRoles}
      builtIn={match.built_in}
    />
  ) : (
    <NotFoundPage />
  );
}

const fields = (role: typeof EMPTY) => ({
  name: role.name,
  display_name: role.display_name,
  organization_permissions: role.organization_permissions,
  organization_member_permissions: role.organization_member_permissions,
});

function Editor({
  view,
  role,
  create = false,
  readOnly = false,
  builtIn = false,
}: {
  view: OrganizationView;
  role: typeof EMPTY;
  create?: boolean;
  readOnly?: boolean;
  builtIn?: boolean;
}) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [tab, setTab] = useState("all");
  const list = `${view.home}/roles`;
  const { name, display_name } = role;
  const path = `/api/v2/organizations/${view.organization.name}/members/roles`;
  const loadCurrent = async () =>
    fields(
      (await get<AssignableRoles[]>(path)).find((candidate) => candidate.name === name) ?? EMPTY,
    );
  const form = useSettingsForm(
    create ? null : loadCurrent,
    (current) => current,
    fields(role),
    async (values) => {
      await (create ? post : put)(path, { ...values, site_permissions: [], user_permissions: [] });
      toast.done(`Custom role "${values.name}" ${create ? "created" : "updated"} successfully.`);
      await queries.invalidateQueries({
        queryKey: ["organizations", view.organization.name, "members"],
      });
      await navigate(list);
    },
  );
  const { values, set, problem } = form;
  return (
    <>
      <PageHead
        title={create ? "Create Custom Role" : readOnly ? display_name || name : "Edit Custom Role"}
        crumbs={[["Roles", list], [create ? "Create" : display_name || name]]}
        description={
          !readOnly
            ? null
            : builtIn
              ? "This role is built in and cannot be changed."
              : "You need permission to change this role."
        }
      />
      <form onSubmit={form.submit}>
        <Stack>
          <FormProblems form={form} />
          {readOnly ? null : (
            <Section title="General">
              <Stack>
                <TextField
                  label="Name"
                  autoFocus={create}
                  required
                  autoComplete="off"
                  readOnly={!create}
                  hint={
                    create
                      ? "Letters, digits and hyphens. The name cannot be changed later."
                      : "The name cannot be changed."
                  }
                  value={values.name}
                  problem={problem("name")}
                  onChange={(value) => set("name", value)}
                />
                <TextField
                  label="Display name"
                  autoComplete="off"
                  value={values.display_name}
                  problem={problem("display_name")}
                  onChange={(value) => set("display_name", value)}
                />
              </Stack>
            </Section>
          )}
          <Section
            title="Permissions"
            description={readOnly ? null : "You can only grant permissions that you have yourself."}
          >
            <Tabs
              label="Permission scope"
              value={tab}
              onChange={setTab}
              items={[
                { value: "all", text: "All resources of the organization" },
                { value: "own", text: "Own resources only" },
              ]}
            >
              <TabPanel value="all" className="pt-4">
                <Grid
                  label="Permissions in the organization"
                  readOnly={readOnly}
                  value={values.organization_permissions}
                  onChange={(next) => set("organization_permissions", next)}
                />
              </TabPanel>
              <TabPanel value="own" className="pt-4">
                <Grid
                  label="Permissions on own resources"
                  readOnly={readOnly}
                  value={values.organization_member_permissions}
                  onChange={(next) => set("organization_member_permissions", next)}
                />
              </TabPanel>
            </Tabs>
          </Section>
          {readOnly ? null : (
            <div className="flex justify-end gap-2">
              <Button onClick={() => void navigate(list)}>Cancel</Button>
              <Button type="submit" variant="primary" busy={form.busy}>
                {create ? "Create Role" : "Save"}
              </Button>
            </div>
          )}
        </Stack>
      </form>
    </>
  );
}

function Grid({
  label,
  value,
  onChange,
  readOnly,
}: {
  label: string;
  value: readonly Permission[];
  onChange: (value: Permission[]) => void;
  readOnly: boolean;
}) {
  const others = summary(beyondGrid(value));
  return (
    <>
      <ul aria-label={label} className="divide-y divide-line rounded-lg border border-line">
        {GRID.map((row) => {
          const count = row.actions.filter((action) => isGiven(value, row.kind, action)).length;
          const everything = (on: boolean) =>
            onChange(
              row.actions.reduce<Permission[]>(
                (sum, action) => grantedActions(sum, row.kind, action, on),
                [...value],
              ),
            );
          return (
            <li
              key={row.kind}
              className="grid grid-cols-[14rem_minmax(0,1fr)] gap-x-4 gap-y-2 px-3.5 py-2.5 max-md:grid-cols-1"
            >
              <label className="flex items-start gap-2.5" data-testid={row.kind}>
                <input
                  type="checkbox"
                  aria-label={`${row.text}: all actions`}
                  disabled={readOnly}
                  className="mt-0.5 shrink-0"
                  checked={count === row.actions.length}
                  ref={(input) => {
                    if (input) input.indeterminate = count > 0 && count < row.actions.length;
                  }}
                  onChange={(event) => everything(event.target.checked)}
                />
                <span>
                  <span className="block font-medium">{row.text}</span>
                  {row.hint ? <span className="block text-sm text-muted">{row.hint}</span> : null}
                </span>
              </label>
              <div
                role="group"
                aria-label={row.text}
                className="flex flex-wrap content-start gap-x-4 gap-y-1.5"
              >
                {row.actions.map((action) => (
                  <label key={action} className="flex items-center gap-1.5 text-sm">
                    <input
                      type="checkbox"
                      data-testid={`${row.kind}-${action}`}
                      disabled={readOnly}
                      checked={isGiven(value, row.kind, action)}
                      onChange={(event) =>
                        onChange(grantedActions(value, row.kind, action, event.target.checked))
                      }
                    />
                    {ACTION_TEXT[action] ?? action.replaceAll("_", " ")}
                  </label>
                ))}
              </div>
            </li>
          );
        })}
      </ul>
      {others.length > 0 ? (
        <div className="mt-3">
          <Notice kind="info" title="Other permissions">
            {byActions(others).map((row) => (
              <p key={`${row.actions} ${row.negate}`}>
                <strong className="font-medium text-text">
                  {row.negate ? "Denies" : "Grants"} {row.actions}
                </strong>
                : {row.texts.join(", ")}
              </p>
            ))}
          </Notice>
        </div>
      ) : null}
    </>
  );
}
