// The search of a list: one line in the server's query language, presets, and menus that edit it.
// The query is in the address, so that a filtered list can be shared as a link.
import { ChevronDown, CircleAlert, ListFilter, Search, X } from "lucide-react";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useId, useState, type ReactNode } from "react";
import { useSearchParams } from "react-router";

import { Button, IconButton } from "../Button";
import { ChoiceList } from "../forms/ChoiceList";
import type { Choice } from "../forms/choices";
import { INPUT } from "../forms/Field";
import { Menu, MenuItem, MenuLabel } from "../Menu";
import { Popover } from "../Popover";
import { cx } from "../cx";
import { keyOf } from "../keys";
import { withTerm, termOf } from "./search-terms";
import { useTyped } from "./typed";

export interface FilterMenu {
  /** The key of the query language: `status` writes `status:running`. */
  term: string;
  label: string;
  /** The button's text without a choice: "All users". */
  any?: string;
  options: readonly Choice[];
  /** Why the server’s options are missing. */
  failure?: string | undefined;
  /** Searches the server beyond `options`: for fields with possibly thousands of values. */
  find?: (text: string) => Found;
}

interface Found {
  queryKey: readonly unknown[];
  queryFn: () => Promise<readonly Choice[]>;
}

interface FilterBarProps {
  label: string;
  placeholder: string;
  filter: string;
  onChange: (filter: string) => void;
  presets?: readonly (readonly [text: string, filter: string])[];
  menus?: readonly FilterMenu[];
  /** The server's error for the query. */
  problem?: string | undefined;
  children?: ReactNode;
}

/**
 * `filter` and `page` of a list, kept in the address. `initial` applies to an address without a
 * filter.
 */
export function useListAddress(initial = "") {
  const [params, setParams] = useSearchParams();
  const show = (filter: string, page = 1) =>
    setParams(
      (old) => {
        const next = new URLSearchParams(old);
        if (filter === initial) next.delete("filter");
        else next.set("filter", filter);
        if (page > 1) next.set("page", String(page));
        else next.delete("page");
        return next;
      },
      { replace: true },
    );
  return {
    filter: params.get("filter") ?? initial,
    page: Math.max(1, Math.trunc(Number(params.get("page"))) || 1),
    show,
  };
}

export function FilterBar({
  label,
  placeholder,
  filter,
  onChange,
  presets = [],
  menus = [],
  problem,
  children,
}: FilterBarProps) {
  const { text, setText, send, choose } = useTyped(filter, onChange);
  return (
    <div className="mb-4 flex flex-col gap-2" role="search" aria-label={label}>
      <div className="flex flex-wrap items-center gap-2">
        {presets.length > 0 ? (
          <Menu
            align="start"
            trigger={
              <Button icon={<ListFilter />}>
                Filters
                <ChevronDown />
              </Button>
            }
          >
            <MenuLabel>Common searches</MenuLabel>
            {presets.map(([name, query]) => (
              <MenuItem key={name} onSelect={() => choose(query)} hint={query || "everything"}>
                {name}
              </MenuItem>
            ))}
          </Menu>
        ) : null}
        <div className="relative min-w-56 flex-1 max-sm:order-first max-sm:w-full max-sm:flex-none">
          <Search
            className="pointer-events-none absolute top-1/2 left-2.5 size-4 -translate-y-1/2 text-faint"
            aria-hidden="true"
          />
          <input
            type="search"
            aria-label={label}
            value={text}
            spellCheck={false}
            autoComplete="off"
            placeholder={`Search... ${placeholder}`}
            data-shortcut="/"
            aria-invalid={problem ? true : undefined}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={(event) => {
              if (keyOf(event) === "Enter") send(text);
            }}
            className={cx(
              INPUT,
              "h-8.5 pr-8 pl-8.5 placeholder:font-sans [&::-webkit-search-cancel-button]:hidden",
              presets.length + menus.length > 0 && "font-mono text-sm",
            )}
          />
          {text === "" ? null : (
            <IconButton
              label="Clear search"
              size="sm"
              className="absolute top-1/2 right-1 -translate-y-1/2"
              onClick={() => choose("")}
            >
              <X />
            </IconButton>
          )}
        </div>
        {menus.map((menu) => {
          const onChoose = (value: string | null) => choose(withTerm(text, menu.term, value));
          const chosen = termOf(filter, menu.term);
          return menu.find ? (
            <SearchMenu
              key={menu.term}
              menu={menu}
              find={menu.find}
              chosen={chosen}
              onChoose={onChoose}
            />
          ) : (
            <TermMenu key={menu.term} menu={menu} chosen={chosen} onChoose={onChoose} />
          );
        })}
        {children}
      </div>
      {problem ? (
        <p role="alert" className="flex items-center gap-1.5 text-sm text-bad">
          <CircleAlert className="size-4" aria-hidden="true" />
          {problem}
        </p>
      ) : null}
    </div>
  );
}

interface TermMenuProps {
  menu: FilterMenu;
  /** The value of its term now, null for none. */
  chosen: string | null;
  onChoose: (value: string | null) => void;
}

function TermMenu({ menu, chosen, onChoose }: TermMenuProps) {
  const option = menu.options.find((item) => item.value === chosen);
  return (
    <Menu
      align="start"
      label={menu.label}
      trigger={
        <Button className={chosen === null ? "text-muted" : CHOSEN}>
          {option?.icon}
          <MenuName menu={menu} chosen={option?.text ?? chosen} />
          <ChevronDown />
        </Button>
      }
    >
      <MenuItem onSelect={() => onChoose(null)}>Any</MenuItem>
      {menu.failure ? (
        <p role="alert" className="px-2.5 py-1.5 text-sm text-bad">
          {menu.failure}
        </p>
      ) : null}
      {menu.options.map((item) => (
        <MenuItem key={item.value} icon={item.icon} onSelect={() => onChoose(item.value)}>
          {item.text}
        </MenuItem>
      ))}
    </Menu>
  );
}

const CHOSEN = "border-accent! text-accent-text";
const ANY: Choice = { value: "", text: "Any" };

function MenuName({ menu, chosen }: { menu: FilterMenu; chosen: string | null }) {
  return (
    <span className="max-w-36 truncate">
      {chosen === null ? (menu.any ?? menu.label) : `${menu.label}: ${chosen}`}
    </span>
  );
}

function SearchMenu({
  menu,
  find,
  chosen,
  onChoose,
}: TermMenuProps & { find: (text: string) => Found }) {
  const id = useId();
  const [open, setOpen] = useState(false);
  const [text, setText] = useState("");
  const answer = useQuery({
    ...find(text.trim()),
    placeholderData: keepPreviousData,
    enabled: open,
  });
  const results = answer.data ?? [];
  const fixed = [ANY, ...menu.options];
  const options = [
    ...fixed,
    ...results.filter((result) => !fixed.some((other) => other.value === result.value)),
  ];
  const option = options.find((item) => item.value === chosen);
  const show = (next: boolean) => {
    setOpen(next);
    setText("");
  };
  return (
    <Popover
      align="start"
      label={menu.label}
      className="w-72"
      open={open}
      onOpenChange={show}
      trigger={
        <Button className={chosen === null ? "text-muted" : CHOSEN}>
          {option?.icon}
          <MenuName menu={menu} chosen={option?.text ?? chosen} />
          <ChevronDown />
        </Button>
      }
    >
      <ChoiceList
        id={id}
        value={chosen ?? ""}
        options={options}
        onSearch={setText}
        failure={answer.isLoadingError ? `The search failed: ${answer.error.message}` : undefined}
        onChange={(value) => {
          onChoose(value === "" ? null : value);
          show(false);
        }}
      />
    </Popover>
  );
}
