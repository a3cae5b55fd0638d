// The open menu: its list, which the library positions and moves the focus in. Loaded after the page, by
// ../Menu.
import { Menu as Radix } from "radix-ui/internal";
import { useRef, type ReactNode } from "react";
import { Link } from "react-router";

import { cx } from "../cx";
import { keyOf } from "../keys";
import type { MenuCheckProps, MenuItemProps, MenuPanelProps } from "./panel-props";

const ITEM = cx(
  "flex w-full items-center gap-2.5 rounded-md px-2.5 py-1.5 text-base",
  "outline-none data-disabled:opacity-50 data-highlighted:marked [&_svg]:size-4",
  "[&_svg]:shrink-0 [&_svg]:text-muted",
);

export function MenuPanel({ anchor, open, onOpenChange, children, ...rest }: MenuPanelProps) {
  const { align, label, triggerId, contentId } = rest;
  // A press outside focuses what was pressed; otherwise the focus returns to the button.
  const pressedOutside = useRef(false);
  return (
    <Radix.Root modal={false} open={open} onOpenChange={onOpenChange}>
      <Radix.Anchor virtualRef={anchor} />
      <Radix.Portal>
        <Radix.Content
          id={contentId}
          aria-labelledby={triggerId}
          align={align}
          sideOffset={6}
          collisionPadding={8}
          aria-label={label}
          onKeyDown={(event) => {
            if (keyOf(event) === "Tab") onOpenChange(false); // the library ignores it
          }}
          onInteractOutside={() => {
            pressedOutside.current = true;
          }}
          onCloseAutoFocus={(event) => {
            if (!pressedOutside.current) anchor.current?.focus();
            pressedOutside.current = false;
            event.preventDefault();
          }}
          className={cx(
            "z-50 max-h-(--radix-popper-available-height) min-w-48 max-w-80",
            "animate-appear overflow-y-auto rounded-lg border border-line bg-raised p-1",
            "shadow-raised",
          )}
        >
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

/** A sentence in place of actions that the user may not perform. */
export function MenuNote({ children }: { children: ReactNode }) {
  return <Radix.Label className="px-2.5 py-1.5 text-xs text-muted">{children}</Radix.Label>;
}

export function MenuItem({
  children,
  icon,
  onSelect,
  to,
  href,
  download = false,
  danger = false,
  disabled = false,
  hint,
  testId,
}: MenuItemProps) {
  const body = (
    <>
      {icon}
      <span className="min-w-0 flex-1">
        <span className="block truncate">{children}</span>
        {hint ? <span className="block text-xs text-muted">{hint}</span> : null}
      </span>
    </>
  );
  const itemClass = cx(ITEM, danger && "text-bad [&_svg]:text-bad!");
  if (to !== undefined && !disabled) {
    return (
      <Radix.Item asChild>
        <Link to={to} className={itemClass} data-testid={testId}>
          {body}
        </Link>
      </Radix.Item>
    );
  }
  if (href !== undefined && !disabled) {
    return (
      <Radix.Item asChild>
        <a
          href={href}
          className={itemClass}
          data-testid={testId}
          {...(download ? { download: true } : { target: "_blank", rel: "noreferrer" })}
        >
          {body}
        </a>
      </Radix.Item>
    );
  }
  return (
    <Radix.Item
      className={itemClass}
      disabled={disabled}
      data-testid={testId}
      onSelect={() => onSelect?.()}
    >
      {body}
    </Radix.Item>
  );
}

export function MenuCheck({ checked, onChange, children }: MenuCheckProps) {
  return (
    <Radix.CheckboxItem
      checked={checked}
      onCheckedChange={onChange}
      onSelect={(event) => event.preventDefault()}
      className={ITEM}
    >
      <span
        aria-hidden="true"
        className={cx(
          "grid size-4 place-items-center rounded-sm border",
          checked ? "border-accent bg-accent text-on-accent" : "border-line-strong",
        )}
      >
        {checked ? "✓" : ""}
      </span>
      <span className="min-w-0 flex-1 truncate">{children}</span>
    </Radix.CheckboxItem>
  );
}

export function MenuLabel({ children }: { children: ReactNode }) {
  return (
    <Radix.Label className="px-2.5 pt-1.5 pb-1 text-xs font-medium text-faint">
      {children}
    </Radix.Label>
  );
}

export function MenuSeparator() {
  return <Radix.Separator className="my-1 h-px bg-line" />;
}
