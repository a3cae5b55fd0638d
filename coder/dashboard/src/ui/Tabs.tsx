// Two kinds of tabs: links between pages of one object, and panels within a page.
import { Tabs as Radix } from "radix-ui";
import { useEffect, useRef, type ReactNode } from "react";
import { NavLink, useLocation } from "react-router";

import { cx } from "./cx";

const TAB = cx(
  "-mb-px inline-flex items-center gap-1.5 border-b-2 px-0.5 py-2 text-base",
  "font-medium whitespace-nowrap text-muted transition-colors duration-(--quick)",
  "hover:text-text [&_svg]:size-4",
  "focus-visible:-outline-offset-2", // the row that scrolls would cut an outline around the tab
);

// On a phone a row may be wider than the screen: a faded edge shows that there is more.
const ROW = cx(
  "flex gap-5 overflow-x-auto border-b border-line [scrollbar-width:none]",
  "max-md:pr-8",
  "max-md:[mask-image:linear-gradient(to_right,black_calc(100%-2.5rem),transparent)]",
);

/** Pages of one object; on a phone the row scrolls sideways, with the current page in view. */
export function LinkTabs({
  label,
  items,
}: {
  label: string;
  items: readonly { to: string; text: ReactNode; end?: boolean }[];
}) {
  const row = useRef<HTMLElement>(null);
  const { pathname } = useLocation();
  useEffect(() => {
    const [shown, nav] = [
      row.current?.querySelector<HTMLElement>("[aria-current=page]"),
      row.current,
    ];
    if (shown && nav)
      nav.scrollLeft =
        shown.offsetLeft - nav.offsetLeft - (nav.clientWidth - shown.offsetWidth) / 2;
  }, [pathname, items.length]); // tabs that depend on permissions appear late
  return (
    <nav ref={row} aria-label={label} className={ROW}>
      {items.map((item) => (
        <NavLink
          key={item.to}
          to={item.to}
          end={item.end ?? true}
          className={({ isActive }) =>
            `${TAB} ${isActive ? "border-accent text-text!" : "border-transparent"}`
          }
        >
          {item.text}
        </NavLink>
      ))}
    </nav>
  );
}

export function Tabs({
  label,
  value,
  onChange,
  items,
  children,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  items: readonly { value: string; text: ReactNode }[];
  children: ReactNode;
}) {
  return (
    <Radix.Root value={value} onValueChange={onChange}>
      <Radix.List aria-label={label} className={ROW}>
        {items.map((item) => (
          <Radix.Trigger
            key={item.value}
            value={item.value}
            className={`${TAB} border-transparent data-[state=active]:border-accent data-[state=active]:text-text`}
          >
            {item.text}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {children}
    </Radix.Root>
  );
}

export const TabPanel = Radix.Content;
