// Pages that belong together, with a side navigation; on a phone it becomes a select.
import type { ReactNode } from "react";
import { NavLink, useLocation, useNavigate } from "react-router";

import { cx } from "../../ui/cx";
import { SelectField } from "../../ui/forms/Field";
import { SkipLink } from "../../ui/SkipLink";
import { SECTION } from "./section";
import { useReachable } from "./useReachable";
import type { NavItem } from "./nav-item";

export interface SideGroup {
  title?: string;
  items: readonly NavItem[];
}

interface SidePageProps {
  label: string;
  groups: readonly SideGroup[];
  /** Shown above the links: the object or user that these pages belong to. */
  head?: ReactNode;
  children: ReactNode;
}

export function SidePage({ label, groups, head, children }: SidePageProps) {
  const reachable = useReachable();
  const shown = groups
    .map((group) => ({ ...group, items: group.items.filter(reachable) }))
    .filter((group) => group.items.length > 0);
  const { pathname } = useLocation();
  const navigate = useNavigate();
  const flat = shown.flatMap((group) => group.items);
  const currentItem = flat
    .filter((item) => pathname === item.to || pathname.startsWith(`${item.to}/`))
    .sort((a, b) => b.to.length - a.to.length)[0];
  if (flat.length === 0)
    return (
      <>
        {head}
        {children}
      </>
    ); // a user who may see only this page needs no navigation
  return (
    <div className="relative grid grid-cols-[13.5rem_minmax(0,1fr)] items-start gap-x-10 gap-y-4 max-md:grid-cols-1">
      <SkipLink to={SECTION}>Skip the side navigation</SkipLink>
      <div className="md:sticky md:top-20">
        {head ? <div className="mb-4">{head}</div> : null}
        <nav aria-label={label} data-side-links className="flex flex-col gap-4 max-md:hidden">
          {shown.map((group, index) => (
            <div key={group.title ?? index}>
              {group.title ? (
                <p className="mb-1 px-2.5 text-xs font-medium text-faint">{group.title}</p>
              ) : null}
              <ul className="flex flex-col gap-px">
                {group.items.map((item) => (
                  <li key={item.to}>
                    <NavLink
                      to={item.to}
                      end={item !== currentItem}
                      className={({ isActive }) =>
                        cx(
                          "block truncate rounded-md px-2.5 py-1.5 text-base font-medium transition-colors",
                          "duration-(--quick)",
                          isActive
                            ? "bg-hover text-text"
                            : "text-muted hover:bg-hover hover:text-text",
                        )
                      }
                    >
                      {item.text}
                    </NavLink>
                  </li>
                ))}
              </ul>
            </div>
          ))}
        </nav>
        <div className="md:hidden">
          <SelectField
            label={label}
            hideLabel
            value={currentItem?.to ?? ""}
            options={[
              ...(currentItem ? [] : [["", "Go to…"] as const]),
              ...flat.map((item) => [item.to, item.text] as const),
            ]}
            onChange={(to) => {
              if (to) void navigate(to);
            }}
          />
        </div>
      </div>
      <div id={SECTION} tabIndex={-1} data-focus-quiet className="min-w-0 [--narrow:0]">
        {children}
      </div>
    </div>
  );
}
