// Keys that work on every page: Ctrl/Cmd+K for the palette, "/" for the page's search, "g" and a
// letter for pages, "?" for the list of all.
import { useEffect, useRef } from "react";
import { useNavigate } from "react-router";

import { MAIN } from "./nav";

const PLACES: Record<string, string> = {
  ...Object.fromEntries(MAIN.map(({ key, to }) => [key, to])),
  i: "/inbox",
};
const SECOND_KEY_MS = 900;

export function useShortcuts(active: boolean, openPalette: () => void, openHelp: () => void): void {
  const navigate = useNavigate();
  const open = useRef(openPalette);
  const help = useRef(openHelp);
  useEffect(() => {
    open.current = openPalette;
    help.current = openHelp;
  });
  useEffect(() => {
    if (!active) return;
    let pressed = 0;
    const key = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        open.current();
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const path = PLACES[event.key];
      if (path && performance.now() - pressed < SECOND_KEY_MS) void navigate(path);
      else if (event.key === "?") help.current();
      else if (event.key === "/") {
        const search = document.querySelector<HTMLInputElement>("main input[data-shortcut='/']");
        if (search) {
          event.preventDefault();
          search.focus();
          search.select();
        }
      }
      pressed = event.key === "g" ? performance.now() : 0;
    };
    window.addEventListener("keydown", key);
    return () => window.removeEventListener("keydown", key);
  }, [active, navigate]);
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) ||
      target.closest(".xterm, .cm-editor, [role=menu], [role=dialog]") !== null)
  );
}
