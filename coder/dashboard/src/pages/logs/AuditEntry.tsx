// An entry of the audit log: a sentence, and the changed values.
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";

import { usePermissions } from "../../api/permissions";
import { organizations } from "../../api/queries/session";
import type { AuditLog } from "../../api/types";
import { useMe } from "../../features/session/useMe";
import { Avatar } from "../../ui/Avatar";
import { Tag } from "../../ui/Badge";
import { Facts } from "../../ui/Card";
import { DetailsRow, useDetails } from "../../ui/lists/DetailsRow";
import { dateTime, timeOfDay } from "../../lib/time";
import { changes, linkOf, ownerOf, program, sentence, words, type Change } from "./audit";
import { useNames, withNames } from "./names";

export function Entry({ entry }: { entry: AuditLog }) {
  const details = useDetails();
  const several = (useQuery(organizations).data ?? []).length > 1;
  const lines = changes(entry.diff);
  const username = entry.user?.username ?? "";
  const failed = entry.status_code >= 400;
  const more = Object.entries((entry.additional_fields ?? {}) as Record<string, unknown>).filter(
    ([, value]) => typeof value === "string" && value !== "",
  );
  return (
    <DetailsRow
      {...details}
      testId={`audit-log-row-${entry.id}`}
      label={entry.description
        .replace("{user}", username)
        .replace("{target}", entry.resource_target)}
      details={
        <>
          {lines.length > 0 ? (
            <Diff lines={lines} diff={entry.diff} />
          ) : (
            <p className="text-muted">No values changed.</p>
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
        </>
      }
    >
      <Avatar name={username || "?"} src={entry.user?.avatar_url} size="sm" />
      <div className="min-w-0 flex-1">
        <p className="[overflow-wrap:anywhere]">
          <Sentence entry={entry} />
          {ownerOf(entry) ? <> for {ownerOf(entry)}</> : null}
          {entry.is_deleted ? <span className="text-muted"> (deleted)</span> : null}
        </p>
        <p className="text-sm text-muted [overflow-wrap:anywhere]">
          <time dateTime={entry.time} title={dateTime(entry.time)}>
            {timeOfDay(entry.time)}
          </time>
          {entry.ip ? <>&nbsp;· {entry.ip}</> : null}
          {entry.user_agent ? (
            <span title={entry.user_agent}>&nbsp;· {program(entry.user_agent)}</span>
          ) : null}
          {entry.organization && several ? (
            <span>&nbsp;· in {entry.organization.display_name || entry.organization.name}</span>
          ) : null}
        </p>
      </div>
      {/* A title of the tag would be one more stop of the keyboard for each entry. */}
      <span title={failed ? "The request was rejected or failed." : "The request succeeded."}>
        <Tag tone={failed ? "bad" : "idle"}>{entry.status_code}</Tag>
      </span>
    </DetailsRow>
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

function Diff({ lines, diff }: { lines: readonly Change[]; diff: unknown }) {
  const names = useNames(diff);
  return (
    <div
      className="overflow-x-auto rounded-lg border border-line bg-surface"
      tabIndex={0}
      role="group"
      aria-label="Changes"
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
              <th
                scope="row"
                className="px-3 py-1.5 text-left font-medium whitespace-nowrap"
                title={line.field}
              >
                {words(line.field)}
              </th>
              <td className="px-3 py-1.5">
                <Value value={line.before} names={names} tone="text-bad bg-bad-soft" sign="−" />
              </td>
              <td className="px-3 py-1.5">
                <Value value={line.after} names={names} tone="text-good bg-good-soft" sign="+" />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Value({
  value,
  names,
  tone,
  sign,
}: {
  value: string | null;
  names: ReadonlyMap<string, string>;
  tone: string;
  sign: string;
}) {
  if (value === null) return <span className="text-muted">hidden (secret)</span>;
  if (value === "") return <span className="text-muted">empty</span>;
  return (
    <code className={`rounded-sm px-1 py-px [overflow-wrap:anywhere] ${tone}`} title={value}>
      <span aria-hidden="true">{sign} </span>
      {withNames(value, names)}
    </code>
  );
}
