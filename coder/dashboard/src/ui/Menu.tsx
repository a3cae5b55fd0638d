// A menu behind a button. Items are links or actions; an unavailable one is disabled with its
// reason.
import { DropdownMenu } from "radix-ui";
import { useState, type ReactNode } from "react";
import { Link } from "react-router";

import { cx } from "./cx";
import { keyOf } from "./keys";

const ITEM = cx(
  "flex w-full items-center gap-2.5 rounded-md px-2.5 py-1.5 text-base",
  "outline-none data-disabled:opacity-50 data-highlighted:marked [&_svg]:size-4",
  "[&_svg]:shrink-0 [&_svg]:text-muted",
);

export function Menu({
  trigger,
  children,
  align = "end",
  label,
  onOpen,
}: {
  trigger: ReactNode;
  children: ReactNode;
  align?: "start" | "end";
  label?: string;
  onOpen?: () => void;
}) {
  const [open, setOpen] = useState(false);
  return (
    <DropdownMenu.Root
      modal={false}
      open={open}
      onOpenChange={(next) => {
        setOpen(next);
        if (next) onOpen?.();
      }}
    >
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          align={align}
          sideOffset={6}
          collisionPadding={8}
          aria-label={label}
          onKeyDown={(event) => {
            if (keyOf(event) === "Tab") setOpen(false); // the library ignores it
          }}
          className={cx(
            "z-50 max-h-(--radix-dropdown-menu-content-available-height) min-w-48 max-w-80",
            "animate-appear overflow-y-auto rounded-lg border border-line bg-raised p-1",
            "shadow-raised",
          )}
        >
          {children}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

/** A sentence in place of actions that the user may not perform. */
export function MenuNote({ children }: { children: ReactNode }) {
  return (
    <DropdownMenu.Label className="px-2.5 py-1.5 text-xs text-muted">{children}</DropdownMenu.Label>
  );
}

interface MenuItemProps {
  children: ReactNode;
  icon?: ReactNode;
  onSelect?: () => void;
  to?: string;
  href?: string;
  /** Opens a file or another site: a plain browser link. */
  download?: boolean;
  danger?: boolean;
  disabled?: boolean;
  /** The reason why it is disabled, or its effect. */
  hint?: ReactNode;
  testId?: string;
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
      <DropdownMenu.Item asChild>
        <Link to={to} className={itemClass} data-testid={testId}>
          {body}
        </Link>
      </DropdownMenu.Item>
    );
  }
  if (href !== undefined && !disabled) {
    return (
      <DropdownMenu.Item asChild>
        <a
          href={href}
          className={itemClass}
          data-testid={testId}
          {...(download ? { download: true } : { target: "_blank", rel: "noreferrer" })}
        >
          {body}
        </a>
      </DropdownMenu.Item>
    );
  }
  return (
    <DropdownMenu.Item
      className={itemClass}
      disabled={disabled}
      data-testid={testId}
      onSelect={() => onSelect?.()}
    >
      {body}
    </DropdownMenu.Item>
  );
}

export function MenuCheck({
  checked,
  onChange,
  children,
}: {
  checked: boolean;
  onChange: (checked: boolean) => void;
  children: ReactNode;
}) {
  return (
    <DropdownMenu.CheckboxItem
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
    </DropdownMenu.CheckboxItem>
  );
}

export function MenuLabel({ children }: { children: ReactNode }) {
  return (
    <DropdownMenu.Label className="px-2.5 pt-1.5 pb-1 text-xs font-medium text-faint">
      {children}
    </DropdownMenu.Label>
  );
}

export function MenuSeparator() {
  return <DropdownMenu.Separator className="my-1 h-px bg-line" />;
}
