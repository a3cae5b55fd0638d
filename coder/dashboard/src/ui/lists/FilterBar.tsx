// The search of a list: one line in the server's own query language, presets, and menus that write into it. What is
// looked for is in the address, so a list as it is seen can be sent to somebody.
import { ChevronDown, CircleAlert, ListFilter, Search, X } from "lucide-react";
import type { ReactNode } from "react";
import { useSearchParams } from "react-router";

import { Button, IconButton } from "../Button";
import { INPUT } from "../forms/Field";
import { Menu, MenuItem, MenuLabel } from "../Menu";
import { cx } from "../cx";
import { keyOf } from "../keys";
import { withTerm, termOf } from "./search-terms";
import { useTyped } from "./typed";

export interface FilterMenu {
  /** The key of the query language: `status` writes `status:running`. */
  term: string;
  label: string;
  options: readonly { value: string; text: string; icon?: ReactNode }[];
}

interface FilterBarProps {
  label: string;
  placeholder: string;
  filter: string;
  onChange: (filter: string) => void;
  presets?: readonly (readonly [text: string, filter: string])[];
  menus?: readonly FilterMenu[];
  /** What the server found wrong with the query. */
  problem?: string | undefined;
  children?: ReactNode;
}

/** `filter` and `page` of a list, kept in the address. `initial` stands for an address without a filter. */
export function useListAddress(initial = "") {
  const [params, setParams] = useSearchParams();
  const show = (filter: string, page = 1) =>
    setParams((old) => {
      const next = new URLSearchParams(old);
      if (filter === initial) next.delete("filter"); else next.set("filter", filter);
      if (page > 1) next.set("page", String(page)); else next.delete("page");
      return next;
    }, { replace: true });
  return { filter: params.get("filter") ?? initial, page: Math.max(1, Math.trunc(Number(params.get("page"))) || 1), show };
}

export function FilterBar({ label, placeholder, filter, onChange, presets = [], menus = [], problem, children }: FilterBarProps) {
  const { text, setText, send, choose } = useTyped(filter, onChange);
  return (
    <div className="mb-4 flex flex-col gap-2" role="search" aria-label={label}>
      <div className="flex flex-wrap items-center gap-2">
        {presets.length > 0 ? (
          <Menu align="start" trigger={<Button icon={<ListFilter />}>Filters<ChevronDown /></Button>}>
            <MenuLabel>Common searches</MenuLabel>
            {presets.map(([name, query]) => <MenuItem key={name} onSelect={() => choose(query)} hint={query || "everything"}>{name}</MenuItem>)}
          </Menu>
        ) : null}
        <div className="relative min-w-56 flex-1 max-sm:order-first max-sm:w-full max-sm:flex-none">
          <Search className="pointer-events-none absolute top-1/2 left-2.5 size-4 -translate-y-1/2 text-faint" aria-hidden="true" />
          <input type="search" aria-label={label} value={text} spellCheck={false} autoComplete="off" placeholder={placeholder} data-shortcut="/"
            aria-invalid={problem ? true : undefined} onChange={(event) => setText(event.target.value)}
            onKeyDown={(event) => { if (keyOf(event) === "Enter") send(text); }}
            className={cx(INPUT, "h-8.5 pr-8 pl-8.5 placeholder:font-sans [&::-webkit-search-cancel-button]:hidden", presets.length + menus.length > 0 && "font-mono text-sm")} />
          {text === "" ? null : <IconButton label="Clear search" size="sm" className="absolute top-1/2 right-1 -translate-y-1/2" onClick={() => choose("")}><X /></IconButton>}
        </div>
        {menus.map((menu) => <TermMenu key={menu.term} menu={menu} filter={filter} onChoose={(value) => choose(withTerm(text, menu.term, value))} />)}
        {children}
      </div>
      {problem ? <p role="alert" className="flex items-center gap-1.5 text-sm text-bad"><CircleAlert className="size-4" aria-hidden="true" />{problem}</p> : null}
    </div>
  );
}

function TermMenu({ menu, filter, onChoose }: { menu: FilterMenu; filter: string; onChoose: (value: string | null) => void }) {
  const chosen = termOf(filter, menu.term);
  const option = menu.options.find((item) => item.value === chosen);
  return (
    <Menu align="start" label={menu.label} trigger={
      <Button className={chosen === null ? "text-muted" : "border-accent! text-accent-text"}>
        {option?.icon}
        <span className="max-w-36 truncate">{chosen === null ? menu.label : `${menu.label}: ${option?.text ?? chosen}`}</span>
        <ChevronDown />
      </Button>
    }>
      <MenuItem onSelect={() => onChoose(null)}>Any</MenuItem>
      {menu.options.map((item) => (
        <MenuItem key={item.value} icon={item.icon} onSelect={() => onChoose(item.value)}>{item.text}</MenuItem>
      ))}
    </Menu>
  );
}
