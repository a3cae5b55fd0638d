// Who changed what and when. An entry opens to what it changed, value by value.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { ChevronRight, History } from "lucide-react";
import { useId, useState } from "react";
import { Link } from "react-router";

import { ApiError } from "../../api/client";
import { usePermissions } from "../../api/permissions";
import { auditLog, LOG_SHOWN } from "../../api/queries/deployment";
import { organizations } from "../../api/queries/session";
import type { AuditLog } from "../../api/types";
import { useMe } from "../../features/session/useMe";
import { Avatar } from "../../ui/Avatar";
import { Tag } from "../../ui/Badge";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { FilterBar, useListAddress, type FilterMenu } from "../../ui/lists/FilterBar";
import { Facts } from "../../ui/Card";
import { peopleMenu } from "../../features/person/people-menu";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead } from "../../ui/Page";
import { Pager } from "../../ui/lists/Pager";
import { dateTime } from "../../lib/time";
import { useTitle } from "../../ui/title";
import { Refused } from "../../ui/Refused";
import { byDay, changes, linkOf, program, sentence, words, type Change } from "./audit";
import { counted, countedAtStart } from "../../lib/words";

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
  ["Everything", ""],
  ["Created workspaces", "resource_type:workspace action:create"],
  ["Added users", "resource_type:user action:create"],
  ["Builds started by people", "resource_type:workspace_build action:start build_reason:initiator"],
  ["Sign-ins", "action:login"],
  ["Deleted templates", "resource_type:template action:delete"],
] as const;
const COUNT_CAP_SHOWN = 2000;

export function AuditPage() {
  useTitle("Audit");
  const may = usePermissions();
  const { filter, page, show } = useListAddress();
  const list = useQuery({
    ...auditLog(filter, page),
    enabled: may.viewAnyAuditLog,
    placeholderData: keepPreviousData,
  });
  const orgs = useQuery(organizations).data ?? [];
  const menus: FilterMenu[] = [
    ...(may.viewUsers ? [peopleMenu("username", "User")] : []),
    {
      term: "action",
      label: "Action",
      options: ACTIONS.map((value) => ({ value, text: words(value) })),
    },
    {
      term: "resource_type",
      label: "Type",
      options: TYPES.map((value) => ({ value, text: words(value) })),
    },
    ...(orgs.length > 1
      ? [
          {
            term: "organization",
            label: "Organization",
            options: orgs.map((one) => ({ value: one.name, text: one.display_name || one.name })),
          },
        ]
      : []),
  ];
  const problem =
    list.error instanceof ApiError && list.error.status === 400
      ? (list.error.validations[0]?.detail ?? list.error.message)
      : undefined;
  if (may.known && !may.viewAnyAuditLog) return <Refused what="the audit log" />;
  const found = list.data;
  return (
    <>
      <PageHead
        title="Audit logs"
        description={
          <span role="status">
            {!found
              ? " "
              : found.count >= (found.count_cap || COUNT_CAP_SHOWN)
                ? `More than ${counted(found.count_cap, "entry", "entries")}`
                : countedAtStart(found.count, "entry", "entries")}
          </span>
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
      />
      {list.isPending ? <SkeletonRows rows={8} /> : null}
      {list.isError && !problem ? (
        <div className="mb-4">
          <Failure error={list.error} retry={() => void list.refetch()} />
        </div>
      ) : null}
      {found && found.audit_logs.length === 0 ? (
        <div className="rounded-xl border border-line bg-surface">
          <Empty icon={History} title={filter ? "Nothing matches" : "Nothing has happened yet"}>
            {filter
              ? "Change the search above, or clear it."
              : "Every change by a person or a program will be here, with what it was before."}
          </Empty>
        </div>
      ) : null}
      <div className="flex flex-col gap-5">
        {byDay(found?.audit_logs ?? []).map((day) => (
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
      {found ? (
        <Pager
          page={page}
          stale={list.isPlaceholderData}
          size={LOG_SHOWN}
          total={found.count}
          onChange={(next) => show(filter, next)}
        />
      ) : null}
    </>
  );
}

function Entry({ entry }: { entry: AuditLog }) {
  const [open, setOpen] = useState(false);
  const id = useId();
  const lines = changes(entry.diff);
  const who = entry.user?.username ?? "";
  const failed = entry.status_code >= 400;
  const more = Object.entries((entry.additional_fields ?? {}) as Record<string, unknown>).filter(
    ([, value]) => typeof value === "string" && value !== "",
  );
  return (
    <li data-testid={`audit-log-row-${entry.id}`}>
      <div className="flex items-start gap-3 px-4 py-2.5 hover:bg-hover/60">
        <Avatar name={who || "?"} src={entry.user?.avatar_url} size="sm" />
        <div className="min-w-0 flex-1">
          <p className="[overflow-wrap:anywhere]">
            <Sentence entry={entry} />
            {entry.is_deleted ? <span className="text-muted"> (deleted)</span> : null}
          </p>
          <p className="text-sm text-muted [overflow-wrap:anywhere]">
            <time dateTime={entry.time} title={dateTime(entry.time)}>
              {new Date(entry.time).toLocaleTimeString(undefined, {
                hour: "2-digit",
                minute: "2-digit",
                second: "2-digit",
              })}
            </time>
            {entry.ip ? <> · {entry.ip}</> : null}
            {entry.user_agent ? (
              <span title={entry.user_agent}> · {program(entry.user_agent)}</span>
            ) : null}
            {entry.organization && !entry.organization.name.startsWith("default") ? (
              <span> · {entry.organization.display_name || entry.organization.name}</span>
            ) : null}
          </p>
        </div>
        <Tag
          tone={failed ? "bad" : "idle"}
          title={failed ? "It was refused or failed." : "It succeeded."}
        >
          {entry.status_code}
        </Tag>
        <button
          type="button"
          className="grid size-7 place-items-center rounded-md text-muted hover:bg-hover"
          aria-expanded={open}
          aria-controls={id}
          aria-label={`Details of ${entry.description.replace("{user}", who).replace("{target}", entry.resource_target)}`}
          onClick={() => setOpen(!open)}
        >
          <ChevronRight
            className={`size-4 transition-transform duration-(--quick) ${open ? "rotate-90" : ""}`}
            aria-hidden="true"
          />
        </button>
      </div>
      {open ? (
        <div
          id={id}
          className="flex flex-col gap-4 border-t border-line bg-inset px-4 py-3.5 sm:pl-13"
        >
          {lines.length > 0 ? (
            <Diff lines={lines} />
          ) : (
            <p className="text-muted">It changed no value.</p>
          )}
          <Facts
            items={[
              ["Type", words(entry.resource_type)],
              ...more.map(([name, value]) => [words(name), String(value)] as const),
              [
                "Request",
                <code key="request" className="text-sm">
                  {entry.request_id}
                </code>,
              ],
            ]}
          />
        </div>
      ) : null}
    </li>
  );
}

function Sentence({ entry }: { entry: AuditLog }) {
  const link = linkOf(entry, usePermissions(), useMe().username);
  return sentence(entry).map((part, index) => {
    if (part.kind === "text") return <span key={index}>{part.text}</span>;
    if (part.kind === "user" || link === null)
      return (
        <strong key={index} className="font-semibold">
          {part.text}
        </strong>
      );
    return (
      <Link key={index} to={link} className="font-semibold text-accent-text hover:underline">
        {part.text}
      </Link>
    );
  });
}

function Diff({ lines }: { lines: readonly Change[] }) {
  return (
    <div
      className="overflow-x-auto rounded-lg border border-line bg-surface"
      tabIndex={0}
      role="group"
      aria-label="What changed"
    >
      <table className="w-full text-sm" data-testid="audit-diff">
        <thead>
          <tr className="border-b border-line text-left text-muted">
            <th scope="col" className="px-3 py-1.5 font-medium">
              Field
            </th>
            <th scope="col" className="px-3 py-1.5 font-medium">
              Before
            </th>
            <th scope="col" className="px-3 py-1.5 font-medium">
              After
            </th>
          </tr>
        </thead>
        <tbody className="divide-y divide-line">
          {lines.map((line) => (
            <tr key={line.field} className="align-top">
              <th scope="row" className="px-3 py-1.5 text-left font-medium whitespace-nowrap">
                {line.field}
              </th>
              <td className="px-3 py-1.5">
                <Value value={line.before} tone="text-bad bg-bad-soft" sign="−" />
              </td>
              <td className="px-3 py-1.5">
                <Value value={line.after} tone="text-good bg-good-soft" sign="+" />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Value({ value, tone, sign }: { value: string | null; tone: string; sign: string }) {
  if (value === null) return <span className="text-muted">hidden: a secret</span>;
  if (value === "") return <span className="text-muted">empty</span>;
  return (
    <code className={`rounded-sm px-1 py-px [overflow-wrap:anywhere] ${tone}`}>
      <span aria-hidden="true">{sign} </span>
      {value}
    </code>
  );
}
