// Where the focus returns when a dialog closes. Radix returns it to a dialog's trigger, which a dialog
// with controlled state does not have.
import { useCallback, useEffect, useRef } from "react";

const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex]";
const KEPT = 16;

/**
 * The last elements that got the focus or were pressed, newest first: Safari does not focus a
 * pressed button, and a menu disappears before the dialog that it opens can look.
 */
let recent: HTMLElement[] = [];

function track(event: Event) {
  const target =
    event.target instanceof Element ? event.target.closest<HTMLElement>(FOCUSABLE) : null;
  if (!target) return;
  const element = lasting(target);
  recent = [element, ...recent.filter((other) => other !== element)].slice(0, KEPT);
}

/** The element itself, or the button of the menu that contains it: menus disappear with their items. */
function lasting(element: HTMLElement): HTMLElement {
  const trigger = element.closest("[role=menu]")?.getAttribute("aria-labelledby");
  return (trigger ? document.getElementById(trigger) : null) ?? element;
}

document.addEventListener("focusin", track, true);
document.addEventListener("pointerdown", track, true);

/** Whether the Tab key reaches the element. */
export function isUsable(element: HTMLElement): boolean {
  return (
    element.tabIndex >= 0 &&
    !element.matches(":disabled") &&
    element.closest("[aria-hidden=true], [inert]") === null &&
    (element.checkVisibility?.() ?? true)
  );
}

/** The element that has the focus; null if none has. */
function focusedElement(): HTMLElement | null {
  const active = document.activeElement;
  return active instanceof HTMLElement && active !== document.body ? active : null;
}

/** Return the element to which the focus returns after `dialog`, which has just opened or is about to. */
export function focusOrigin(dialog: Element | null = null): HTMLElement | null {
  const active = focusedElement();
  return (
    [...(active ? [lasting(active)] : []), ...recent].find(
      (element) => element.isConnected && !dialog?.contains(element),
    ) ?? null
  );
}

/**
 * Focus the element. If it has disappeared or was disabled meanwhile, focus the control of the same
 * page that had the focus before it; without one, the page's content.
 */
export function returnFocus(origin: HTMLElement | null): void {
  const content = document.getElementById("content");
  const before =
    origin && recent.find((element) => content?.contains(element) && isUsable(element));
  const target = origin?.isConnected && !origin.matches(":disabled") ? origin : before;
  if (target) target.focus();
  else content?.focus({ preventScroll: true });
}

/**
 * Bring the focus back when a dialog closes. Return the ref of its content and the handler of its
 * closing. The library's event of opening is no use: it is left out if an input takes the focus.
 */
export function useFocusReturn(open: boolean) {
  const content = useRef<HTMLDivElement>(null);
  const origin = useRef<HTMLElement | null>(null);
  useEffect(() => {
    if (open) origin.current = focusOrigin(content.current);
  }, [open]);
  return {
    content,
    onCloseAutoFocus: (event: Event) => {
      event.preventDefault();
      // A page that the dialog opened may have focused its first field by now.
      if (focusedElement() === null) returnFocus(origin.current);
    },
  };
}

/**
 * Return the focus to `origin` when the component disappears. The returned function says that another page opens: the
 * focus then waits on the page's content. A page takes it from there for its first field, or has taken it already.
 */
export function useFocusReturnOnUnmount(origin: HTMLElement | null): () => void {
  const leaving = useRef(false);
  useEffect(
    () => () => {
      const settle = () => {
        if (focusedElement() === null) returnFocus(leaving.current ? null : origin);
      };
      if (leaving.current) settle(); // before the page that opens can focus a field
      window.setTimeout(settle); // after the library's own handlers, which leave the focus on the body
    },
    [origin],
  );
  return useCallback(() => {
    leaving.current = true;
  }, []);
}
