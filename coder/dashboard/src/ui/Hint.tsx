// A word with an explanation: shown under a pointer, and with the keyboard's focus (`FocusTitle`).
import type { ReactNode } from "react";

export function Hint({
  text,
  className,
  children,
}: {
  /** The explanation; without one the word is plain text. */
  text: string | undefined;
  className?: string;
  children: ReactNode;
}) {
  return (
    <span className={className} {...(text ? { title: text, tabIndex: 0 } : {})}>
      {children}
    </span>
  );
}
