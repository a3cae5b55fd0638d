// Where the focus goes when another page opens.
import { useEffect, useRef } from "react";
import { useLocation } from "react-router";

import { applyFonts } from "../../features/appearance/fonts";
import { SECTION } from "../../features/navigation/section";

/** The address shown last: pages with and without an account have frames of their own, some pages have none. */
let shownPath: string | null = null;

/** Record a page without a frame: the focus moves to the content of the framed page that follows it. */
export function useUnframedPage(): void {
  const { pathname } = useLocation();
  useEffect(() => {
    shownPath = pathname;
  }, [pathname]);
}

/**
 * Move the focus of keyboards and screen readers to the content of a new page, as a full page load
 * would; past the side navigation if a link of a page led there. Return the ref of the content.
 */
export function useFocusOnNavigation() {
  const { pathname } = useLocation();
  const content = useRef<HTMLElement>(null);
  useEffect(() => {
    const before = shownPath;
    shownPath = pathname;
    if (before === null || before === pathname) return;
    applyFonts();
    const active = document.activeElement;
    if (active?.closest("[role=dialog]")) return; // opened while the page was loading
    const fromPage = active === document.body || active?.closest("[data-side-links]");
    const section = fromPage ? document.getElementById(SECTION) : null;
    if (section) section.focus({ preventScroll: true });
    else if (!content.current?.contains(active)) content.current?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }, [pathname]);
  return content;
}
