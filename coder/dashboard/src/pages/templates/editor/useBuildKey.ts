// Ctrl+Enter (⌘ Enter) builds, as in the original's editor: the way by Tab leads past every file.
import { useEffect, useRef } from "react";

import { keyOf } from "../../../ui/keys";

export function useBuildKey(build: () => void, busy: boolean) {
  const latest = useRef<(() => void) | null>(null);
  useEffect(() => {
    latest.current = busy ? null : build;
  });
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (keyOf(event) !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      if (document.querySelector("[role=dialog], [role=alertdialog]")) return; // the keys are its own
      event.preventDefault();
      event.stopPropagation(); // the code editor would insert a line
      if (!event.repeat) latest.current?.();
    };
    window.addEventListener("keydown", press, true);
    return () => window.removeEventListener("keydown", press, true);
  }, []);
}
