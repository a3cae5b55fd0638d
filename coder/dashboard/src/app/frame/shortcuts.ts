// Keys that work on every page: Ctrl/Cmd+K for the palette, "/" for the page's search, the down arrow
// from there to the results, "j" and "k" for the rows of tables, "g" and a letter for pages, "?" for the list of all.
import { useEffect, useRef } from "react";
import { useNavigate } from "react-router";

import { singleKeysAreOn } from "../../features/appearance/single-keys";
import { MAIN } from "./nav";

const PLACES: Record<string, string> = {
  ...Object.fromEntries(MAIN.map(({ key, to }) => [key, to])),
  i: "/inbox",
};
const SECOND_KEY_MS = 900;
const SEARCH = "main input[data-shortcut='/']";

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
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "ArrowDown" && !event.isComposing && isSearch(event.target)) {
        if (goToRow(1)) event.preventDefault();
        return;
      }
      if (isTyping(event.target)) return;
      if (!singleKeysAreOn()) return;
      const path = PLACES[event.key];
      if (path && performance.now() - pressed < SECOND_KEY_MS) void navigate(path);
      else if (event.key === "?") help.current();
      else if (event.key === "j") goToRow(1);
      else if (event.key === "k") goToRow(-1);
      else if (event.key === "/") {
        const search = document.querySelector<HTMLInputElement>(SEARCH);
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

/**
 * Focus the link of the next or previous row of the page's tables and lists: a row has many controls, through
 * which Tab would lead. Return whether there is such a row.
 */
function goToRow(step: 1 | -1): boolean {
  const rows = [...document.querySelectorAll("main tbody tr, main [data-row]")].flatMap((row) => {
    const target =
      row.querySelector<HTMLElement>("a[href]") ??
      row.querySelector<HTMLElement>("button:enabled, input:enabled");
    return target ? [{ row, target }] : [];
  });
  const at = rows.findIndex(({ row }) => row.contains(document.activeElement));
  const next = rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : at + step];
  next?.target.focus();
  return next !== undefined;
}

function isSearch(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches(SEARCH);
}

const TICKED = "input:is([type=checkbox], [type=radio])";

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && !target.matches(TICKED)) ||
      target.closest(".xterm, .cm-editor, [role=menu], [role=dialog]") !== null)
  );
}
