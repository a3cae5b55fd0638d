// An item of a list whose details open below it: by its button, or by a click anywhere on the row.
import { ChevronRight } from "lucide-react";
import { useId, useState, type MouseEvent, type ReactNode } from "react";

/** Elements with a click of their own. */
const OWN_CLICK = "a, button, input, select, textarea, label, [role=dialog]";

export function useDetails(first = false) {
  const [open, setOpen] = useState(first);
  return { open, toggle: () => setOpen(!open) };
}

interface DetailsRowProps {
  /** What the details are of, for screen readers. */
  label: string;
  details: ReactNode;
  children: ReactNode;
  open: boolean;
  toggle: () => void;
  testId?: string;
}

/** The content of the item; `details` are rendered only while they are open. */
export function DetailsRow({ label, details, children, open, toggle, testId }: DetailsRowProps) {
  const id = useId();
  // A click that ends the selection of some text is not meant for the row.
  const click = ({ target }: MouseEvent) => {
    const selecting = window.getSelection()?.type === "Range";
    if (!selecting && !(target as Element).closest(OWN_CLICK)) toggle();
  };
  return (
    <li data-row data-testid={testId}>
      {/* A larger area for the pointer: keyboards and screen readers use the button. */}
      {/* eslint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-static-element-interactions */}
      <div
        className="flex cursor-pointer items-start gap-3 px-4 py-2.5 hover:bg-hover/60"
        onClick={click}
      >
        {children}
        <button
          type="button"
          className="grid size-7 place-items-center rounded-md text-muted hover:bg-hover"
          aria-expanded={open}
          aria-controls={id}
          aria-label={`Details of ${label}`}
          onClick={toggle}
        >
          <ChevronRight
            className={`size-4 transition-transform duration-(--quick) ${open ? "rotate-90" : ""}`}
            aria-hidden="true"
          />
        </button>
      </div>
      {open ? (
        <div
          id={id}
          className="flex flex-col gap-4 border-t border-line bg-inset px-4 py-3.5 sm:pl-13"
        >
          {details}
        </div>
      ) : null}
    </li>
  );
}
