// Buttons, and links that look like buttons. A busy button keeps its width and announces that it is
// busy.
import { Slot } from "radix-ui";
import {
  useState,
  type ButtonHTMLAttributes,
  type FocusEvent,
  type ReactNode,
  type Ref,
} from "react";
import { Link, type LinkProps } from "react-router";

import { cx } from "./cx";

export type ButtonVariant = "primary" | "secondary" | "quiet" | "danger";
export type ButtonSize = "sm" | "md";

const BASE = cx(
  "inline-flex items-center justify-center gap-1.5 rounded-md font-medium",
  "whitespace-nowrap select-none transition-colors duration-(--quick)",
  "[&_svg]:size-4 [&_svg]:shrink-0 disabled:opacity-50 aria-disabled:opacity-50",
);
const VARIANTS: Record<ButtonVariant, string> = {
  primary: "bg-accent text-on-accent enabled:hover:bg-accent-hover [a&]:hover:bg-accent-hover",
  secondary:
    "border border-line-strong bg-surface text-text shadow-card enabled:hover:bg-hover [a&]:hover:bg-hover",
  quiet:
    "text-muted enabled:hover:bg-hover enabled:hover:text-text [a&]:hover:bg-hover [a&]:hover:text-text",
  danger: "bg-solid-bad text-on-bad enabled:hover:brightness-90",
};
const SIZES: Record<ButtonSize, string> = { sm: "h-7 px-2.5 text-sm", md: "h-8.5 px-3 text-base" };

export function buttonClass(
  variant: ButtonVariant = "secondary",
  size: ButtonSize = "md",
  extra?: string,
): string {
  return cx(BASE, VARIANTS[variant], SIZES[size], extra);
}

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  variant?: ButtonVariant;
  size?: ButtonSize;
  busy?: boolean;
  icon?: ReactNode;
  asChild?: boolean;
  ref?: Ref<HTMLButtonElement>;
}

export function Button({
  variant: look,
  size,
  busy = false,
  icon,
  asChild = false,
  className,
  children,
  disabled,
  ...rest
}: ButtonProps) {
  if (asChild)
    return (
      <Slot.Root className={buttonClass(look, size, className)} {...rest}>
        {children}
      </Slot.Root>
    );
  return (
    <Pressed
      className={buttonClass(look, size, className)}
      off={disabled === true || busy}
      busy={busy}
      {...rest}
    >
      {busy ? <Spinner /> : icon}
      {children}
    </Pressed>
  );
}

/** No press of the keyboard or a pointer reaches it. */
const INERT = {
  onClick: (event: { preventDefault: () => void }) => event.preventDefault(),
  onPointerDown: undefined,
  onKeyDown: undefined,
};

/**
 * A button that is disabled while it has the focus keeps it, and one that gives its reason as its
 * title or description can get it: a browser takes the focus from a disabled button, so that the keyboard loses its
 * place and a screen reader says nothing.
 */
function Pressed({
  off,
  busy,
  onFocus,
  onBlur,
  ...rest
}: Omit<ButtonProps, "variant" | "size" | "icon" | "disabled"> & { off: boolean; busy: boolean }) {
  const [focused, setFocused] = useState(false);
  const explained =
    (Boolean(rest.title) && rest.title !== rest["aria-label"]) || Boolean(rest["aria-describedby"]);
  const reachable = off && (focused || explained);
  return (
    <button
      type="button"
      disabled={off && !reachable}
      aria-busy={busy || undefined}
      onFocus={(event: FocusEvent<HTMLButtonElement>) => {
        setFocused(true);
        onFocus?.(event);
      }}
      onBlur={(event: FocusEvent<HTMLButtonElement>) => {
        setFocused(false);
        onBlur?.(event);
      }}
      {...rest}
      {...(reachable ? { "aria-disabled": true, ...INERT } : {})}
    />
  );
}

interface IconButtonProps extends Omit<ButtonProps, "icon" | "children"> {
  label: string;
  children: ReactNode;
}

/** An icon-only button: `label` is its accessible name and its tooltip. */
export function IconButton({
  label,
  variant: look = "quiet",
  size = "md",
  className,
  children,
  ...rest
}: IconButtonProps) {
  // As the icon: the sign of a busy button takes its place, there is no room beside it.
  return (
    <Button
      icon={children}
      variant={look}
      size={size}
      aria-label={label}
      title={label}
      className={cx(size === "sm" ? "w-7 px-0!" : "w-8.5 px-0!", className)}
      {...rest}
    />
  );
}

interface ButtonLinkProps extends LinkProps {
  variant?: ButtonVariant;
  size?: ButtonSize;
  icon?: ReactNode;
}

export function ButtonLink({
  variant: look,
  size,
  icon,
  className,
  children,
  ...rest
}: ButtonLinkProps) {
  return (
    <Link className={buttonClass(look, size, className)} {...rest}>
      {icon}
      {children}
    </Link>
  );
}

export function Spinner({ label }: { label?: string }) {
  return (
    <span
      className="inline-block size-4 shrink-0 animate-spin rounded-full border-2 border-current border-r-transparent"
      role={label ? "status" : undefined}
      aria-label={label}
      aria-hidden={label ? undefined : true}
    />
  );
}
