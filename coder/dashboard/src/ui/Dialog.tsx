// A dialog over the page: traps the keyboard, closes with Escape, restores the focus.
import { X } from "lucide-react";
import { Dialog as Radix } from "radix-ui";
import { useRef, type ReactNode } from "react";

import { IconButton } from "./Button";
import { cx } from "./cx";
import { useFocusReturn } from "./focus/focus-return";

interface DialogProps {
  open: boolean;
  onClose: () => void;
  title: ReactNode;
  description?: ReactNode;
  children?: ReactNode;
  actions?: ReactNode;
  wide?: boolean;
  /**
   * The content is shown once, or is being created: only the dialog's own buttons close it, neither
   * a click outside nor Escape.
   */
  held?: boolean;
  /**
   * The viewer may no longer see the page: it is covered, and only the dialog's own controls close
   * it.
   */
  covers?: boolean;
}

const ASKED = ["input:not([type=hidden], [readonly])", "select", "textarea:not([readonly])"]
  .map((kind) => `${kind}:enabled:not([tabindex="-1"])`)
  .join(", ");

export function Dialog({
  open,
  onClose,
  title,
  description,
  children,
  actions,
  wide = false,
  held = false,
  covers = false,
}: DialogProps) {
  const body = useRef<HTMLDivElement>(null);
  const { content, onCloseAutoFocus } = useFocusReturn(open);
  // The focus starts at the first input; without inputs, at the first button, which closes the
  // dialog.
  const begin = (event: Event) => {
    const firstInput =
      body.current?.querySelector<HTMLElement>(ASKED) ??
      body.current?.parentElement?.querySelector<HTMLElement>("footer button:enabled");
    if (!firstInput) return;
    event.preventDefault();
    firstInput.focus();
  };
  const stay = (event: Event) => {
    if (held) event.preventDefault();
  };
  return (
    <Radix.Root
      open={open}
      onOpenChange={(next) => {
        if (!next) onClose();
      }}
    >
      <Radix.Portal>
        <Radix.Overlay className={cx("fixed inset-0", covers ? "z-50 bg-bg" : "z-40 bg-overlay")} />
        <Radix.Content
          ref={content}
          data-testid="dialog"
          onOpenAutoFocus={begin}
          onCloseAutoFocus={onCloseAutoFocus}
          onEscapeKeyDown={stay}
          onInteractOutside={stay}
          className={cx(
            "fixed top-[12vh] left-1/2 z-50 flex max-h-[80dvh] w-[calc(100vw-2rem)]",
            "-translate-x-1/2 animate-appear flex-col rounded-xl border border-line",
            "bg-raised shadow-raised",
            wide ? "max-w-3xl" : "max-w-lg",
          )}
          {...(description ? {} : { "aria-describedby": undefined })}
        >
          <header className="flex items-start gap-3 px-5 pt-4">
            <div className="min-w-0 flex-1">
              <Radix.Title className="text-lg font-semibold [overflow-wrap:anywhere]">
                {title}
              </Radix.Title>
              {description ? (
                <Radix.Description asChild>
                  <div className="mt-1 text-base text-muted [overflow-wrap:anywhere]">
                    {description}
                  </div>
                </Radix.Description>
              ) : null}
            </div>
            {covers ? null : (
              <Radix.Close asChild>
                <IconButton label="Close" size="sm">
                  <X />
                </IconButton>
              </Radix.Close>
            )}
          </header>
          <div ref={body} className="min-h-0 overflow-y-auto px-5 py-4">
            {children}
          </div>
          {actions ? (
            <footer className="flex flex-wrap justify-end gap-2 border-t border-line px-5 py-3">
              {actions}
            </footer>
          ) : null}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
