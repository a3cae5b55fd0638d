// The audit log: user, action and time. An entry expands to its changes, value by value.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { History } from "lucide-react";

import { ApiError } from "../../api/client";
import { usePermissions } from "../../api/permissions";
import { auditLog } from "../../api/queries/deployment";
import { organizations } from "../../api/queries/session";
import type { AuditLog, AuditLogResponse } from "../../api/types";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { FilterBar, useListAddress, type FilterMenu } from "../../ui/lists/FilterBar";
import { peopleMenu } from "../../features/person/people-menu";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead } from "../../ui/Page";
import { useListView } from "../../ui/lists/list-view";
import { Pager } from "../../ui/lists/Pager";
import { useTitle } from "../../ui/title";
import { PermissionDenied } from "../../ui/PermissionDenied";
import { byDay, sentence, words } from "./audit";
import { counted, countedAtStart } from "../../lib/words";
import { Entry } from "./AuditEntry";
import { readAll } from "./export";
import { DateRange, ExportMenu } from "./LogTools";

const ACTIONS = [
  "create",
  "write",
  "delete",
  "start",
  "stop",
  "login",
  "logout",
  "register",
  "request_password_reset",
];
const TYPES = [
  "api_key",
  "custom_role",
  "git_ssh_key",
  "group",
  "health_settings",
  "idp_sync_settings_group",
  "idp_sync_settings_organization",
  "idp_sync_settings_role",
  "notification_template",
  "notifications_settings",
  "oauth2_provider_app",
  "oauth2_provider_app_secret",
  "organization",
  "organization_member",
  "task",
  "template",
  "template_version",
  "user",
  "user_secret",
  "workspace",
  "workspace_build",
  "workspace_proxy",
];
const PRESETS = [
  ["All events", ""],
  ["Created workspaces", "resource_type:workspace action:create"],
  ["Added users", "resource_type:user action:create"],
  ["Builds started by users", "resource_type:workspace_build action:start build_reason:initiator"],
  ["Sign-ins", "action:login"],
  ["Deleted templates", "resource_type:template action:delete"],
] as const;
const EXPORTED = {
  time: (entry: AuditLog) => entry.time,
  user: (entry: AuditLog) => entry.user?.username ?? "",
  action: (entry: AuditLog) => entry.action,
  type: (entry: AuditLog) => entry.resource_type,
  target: (entry: AuditLog) => entry.resource_target,
  description: (entry: AuditLog) =>
    sentence(entry)
      .map((part) => part.text)
      .join(""),
  status: (entry: AuditLog) => entry.status_code,
  ip: (entry: AuditLog) => entry.ip ?? "",
  organization: (entry: AuditLog) => entry.organization?.name ?? "",
  changes: (entry: AuditLog) => JSON.stringify(entry.diff),
  request_id: (entry: AuditLog) => entry.request_id,
};
const COUNT_CAP_SHOWN = 2000;

export function AuditPage() {
  useTitle("Audit");
  const may = usePermissions();
  const { filter, page, show } = useListAddress();
  const { size } = useListView();
  const list = useQuery({
    ...auditLog(filter, page, size),
    enabled: may.viewAnyAuditLog,
    placeholderData: keepPreviousData,
  });
  const orgs = useQuery(organizations).data ?? [];
  const menus: FilterMenu[] = [
    ...(may.viewUsers ? [peopleMenu("username", "User", "All users")] : []),
    {
      term: "action",
      label: "Action",
      any: "All actions",
      options: ACTIONS.map((value) => ({ value, text: words(value) })),
    },
    {
      term: "resource_type",
      label: "Type",
      any: "All resource types",
      options: TYPES.map((value) => ({ value, text: words(value) })),
    },
    ...(orgs.length > 1
      ? [
          {
            term: "organization",
            label: "Organization",
            any: "All organizations",
            options: orgs.map((organization) => ({
              value: organization.name,
              text: organization.display_name || organization.name,
            })),
          },
        ]
      : []),
  ];
  const problem =
    list.error instanceof ApiError && list.error.status === 400
      ? (list.error.validations[0]?.detail ?? list.error.message)
      : undefined;
  if (may.known && !may.viewAnyAuditLog) return <PermissionDenied subject="the audit log" />;
  const entries = list.data;
  return (
    <>
      <PageHead
        title="Audit logs"
        description={
          <span role="status">
            {!entries
              ? " "
              : entries.count >= (entries.count_cap || COUNT_CAP_SHOWN)
                ? `More than ${counted(entries.count_cap, "entry", "entries")}`
                : countedAtStart(entries.count, "entry", "entries")}
          </span>
        }
        actions={
          <ExportMenu
            name="audit-log"
            read={() =>
              readAll<AuditLogResponse, AuditLog>(
                "/api/v2/audit",
                filter,
                (page) => page.audit_logs,
              )
            }
            columns={EXPORTED}
          />
        }
      />
      <FilterBar
        label="Search the audit log"
        placeholder="username:ana action:delete date_from:2026-01-31"
        filter={filter}
        onChange={(next) => show(next)}
        presets={PRESETS}
        menus={menus}
        problem={problem}
      >
        <DateRange
          filter={filter}
          terms={["date_from", "date_to"]}
          toTerm={(day) => day}
          onChange={(next) => show(next)}
        />
      </FilterBar>
      {list.isPending ? <SkeletonRows rows={8} /> : null}
      {list.isError && !problem ? (
        <div className="mb-4">
          <Failure error={list.error} retry={() => void list.refetch()} />
        </div>
      ) : null}
      {entries && entries.audit_logs.length === 0 ? (
        <div className="rounded-xl border border-line bg-surface">
          <Empty icon={History} title={filter ? "No results" : "No audit log entries yet"}>
            {filter
              ? "Change or clear the search."
              : "Every change by a user or a program is recorded here, with the previous values."}
          </Empty>
        </div>
      ) : null}
      <div className="flex flex-col gap-5">
        {byDay(entries?.audit_logs ?? []).map((day) => (
          <section key={day.day} aria-label={day.day}>
            <h2 className="mb-1.5 text-sm font-medium text-muted">{day.day}</h2>
            <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-surface shadow-card">
              {day.entries.map((entry) => (
                <Entry key={entry.id} entry={entry} />
              ))}
            </ul>
          </section>
        ))}
      </div>
      {entries ? (
        <Pager
          page={page}
          stale={list.isPlaceholderData}
          size={size}
          adjustable
          total={entries.count}
          onChange={(next) => show(filter, next)}
        />
      ) : null}
    </>
  );
}
