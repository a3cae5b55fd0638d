// Shows the title of the focused element, which browsers show under a pointer only: the names of icon buttons, and the
// reasons of disabled ones. Screen readers read the title itself.
import { useEffect, useState } from "react";

const LOOK =
  "pointer-events-none fixed z-60 w-max max-w-72 -translate-x-1/2 rounded-md bg-text px-2.5 py-1.5 " +
  "text-sm text-bg shadow-raised";

/** Room for a line of text below the element; otherwise it is shown above. */
const BELOW_PX = 48;
/** Distance of the text from the sides of the window. */
const MARGIN_PX = 8;

interface Shown {
  text: string;
  left: number;
  top?: number;
  bottom?: number;
}

function titleOf(target: EventTarget | null): Shown | null {
  if (!(target instanceof HTMLElement) || !target.title || !target.matches(":focus-visible"))
    return null;
  if (target.title === target.textContent?.trim()) return null;
  const { left, width, top, bottom } = target.getBoundingClientRect();
  const middle = left + width / 2;
  return bottom + BELOW_PX < window.innerHeight
    ? { text: target.title, left: middle, top: bottom + 6 }
    : { text: target.title, left: middle, bottom: window.innerHeight - top + 6 };
}

/** Move the text into the window where it would be cut off. */
function fit(box: HTMLElement | null): void {
  if (!box) return;
  const { left, width } = box.getBoundingClientRect();
  const room = window.innerWidth - MARGIN_PX - width;
  const inside = Math.max(MARGIN_PX, Math.min(left, room));
  if (inside !== left) box.style.left = `${inside + width / 2}px`;
}

export function FocusTitle() {
  const [shown, setShown] = useState<Shown | null>(null);
  useEffect(() => {
    const focused = (event: FocusEvent) => setShown(titleOf(event.target));
    const hide = () => setShown(null);
    const move = () => setShown((old) => old && titleOf(document.activeElement));
    document.addEventListener("focusin", focused);
    document.addEventListener("focusout", hide);
    document.addEventListener("keydown", hide); // Escape, or a key that uses the element
    window.addEventListener("scroll", move, true);
    return () => {
      document.removeEventListener("focusin", focused);
      document.removeEventListener("focusout", hide);
      document.removeEventListener("keydown", hide);
      window.removeEventListener("scroll", move, true);
    };
  }, []);
  if (!shown) return null;
  const { text, ...place } = shown;
  return (
    <div
      key={`${place.left} ${text}`}
      ref={fit}
      aria-hidden="true"
      data-testid="focus-title"
      style={place}
      className={LOOK}
    >
      {text}
    </div>
  );
}
