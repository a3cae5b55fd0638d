// Two kinds of tabs: links between pages of one thing, and panels within a page.
import { Tabs as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { NavLink } from "react-router";

const TAB =
  "-mb-px inline-flex items-center gap-1.5 border-b-2 px-0.5 py-2 text-base font-medium whitespace-nowrap text-muted transition-colors duration-(--quick) hover:text-text [&_svg]:size-4";

/** Pages of one thing; on a phone the row scrolls sideways. */
export function LinkTabs({ label, items }: { label: string; items: readonly { to: string; text: ReactNode; end?: boolean }[] }) {
  return (
    <nav aria-label={label} className="flex gap-5 overflow-x-auto border-b border-line [scrollbar-width:none]">
      {items.map((item) => (
        <NavLink key={item.to} to={item.to} end={item.end ?? true} className={({ isActive }) => `${TAB} ${isActive ? "border-accent text-text!" : "border-transparent"}`}>
          {item.text}
        </NavLink>
      ))}
    </nav>
  );
}

export function Tabs({ label, value, onChange, items, children }: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  items: readonly { value: string; text: ReactNode }[];
  children: ReactNode;
}) {
  return (
    <Radix.Root value={value} onValueChange={onChange}>
      <Radix.List aria-label={label} className="flex gap-5 overflow-x-auto border-b border-line [scrollbar-width:none]">
        {items.map((item) => (
          <Radix.Trigger key={item.value} value={item.value} className={`${TAB} border-transparent data-[state=active]:border-accent data-[state=active]:text-text`}>{item.text}</Radix.Trigger>
        ))}
      </Radix.List>
      {children}
    </Radix.Root>
  );
}

export const TabPanel = Radix.Content;
