// The parts of an access review: their rows, why a part is not shown, and what it leaves out.
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";

import type { WorkspacesResponse } from "../../../api/types";
import { Ago } from "../../../ui/Ago";
import { Button } from "../../../ui/Button";
import { Section } from "../../../ui/Card";
import { Skeleton } from "../../../ui/Loading";
import { TextLink } from "../../../ui/Page";

interface Line {
  key: string;
  name: string;
  note: ReactNode;
  to?: string;
}

export const sharedRows = (page: WorkspacesResponse): Line[] =>
  page.workspaces.map((workspace) => ({
    key: workspace.id,
    name: `${workspace.owner_name}/${workspace.name}`,
    to: `/@${workspace.owner_name}/${workspace.name}`,
    note: used(workspace.last_used_at),
  }));

/** How many workspaces are not listed, and where they are. */
export function Unlisted({ page, filter }: { page: WorkspacesResponse; filter: string }) {
  const shown = page.workspaces.length;
  if (page.count <= shown) return null;
  return (
    <p className="border-t border-line px-5 py-3 text-muted">
      {shown} of {page.count} shown.{" "}
      <TextLink to={`/workspaces?filter=${encodeURIComponent(filter)}`}>View all</TextLink>
    </p>
  );
}

export function used(at: string | null): ReactNode {
  return at && Date.parse(at) > 0 ? (
    <>
      last used <Ago at={at} />
    </>
  ) : (
    "never used"
  );
}

export function Part<T>({
  title,
  part,
  hidden,
  empty,
  rest,
  children,
}: {
  title: string;
  part: UseQueryResult<T>;
  /** Why the part is not shown. */
  hidden?: string | undefined;
  empty: string;
  /** What the rows leave out. */
  rest?: (data: T) => ReactNode;
  children: (data: T) => readonly Line[];
}) {
  return (
    <Section title={title} padded={false}>
      {hidden ? (
        <p className="px-5 py-3 text-muted">Not shown: {hidden}</p>
      ) : part.data !== undefined ? (
        <>
          <Rows rows={children(part.data)} empty={empty} />
          {rest?.(part.data)}
        </>
      ) : part.isLoadingError ? (
        <p className="flex flex-wrap items-center gap-3 px-5 py-3 text-muted">
          Not shown: {part.error.message}
          <Button size="sm" onClick={() => void part.refetch()}>
            Try again
          </Button>
        </p>
      ) : (
        <div className="p-4">
          <Skeleton className="h-5" />
        </div>
      )}
    </Section>
  );
}

export function Rows({ rows, empty }: { rows: readonly Line[]; empty: string }) {
  if (rows.length === 0) return <p className="px-5 py-3 text-muted">{empty}</p>;
  return (
    <ul className="divide-y divide-line">
      {rows.map((row) => (
        <li
          key={row.key}
          className="flex flex-wrap items-baseline justify-between gap-x-4 px-5 py-2.5"
        >
          <span className="min-w-0 font-medium [overflow-wrap:anywhere]">
            {row.to ? <TextLink to={row.to}>{row.name}</TextLink> : row.name}
          </span>
          <span className="min-w-0 text-sm text-muted [overflow-wrap:anywhere]">{row.note}</span>
        </li>
      ))}
    </ul>
  );
}
