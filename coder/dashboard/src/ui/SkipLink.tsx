// A link past controls that many pages share: the first one of a page, visible with the focus only.
import { cx } from "./cx";

export function SkipLink({
  to,
  children,
}: {
  /** The id of the element to go to. */ to: string;
  children: string;
}) {
  return (
    <a
      href={`#${to}`}
      className={cx(
        "absolute -left-[999px] z-60 rounded-md bg-raised px-4 py-2 shadow-raised",
        "focus:top-3 focus:left-4",
      )}
    >
      {children}
    </a>
  );
}
