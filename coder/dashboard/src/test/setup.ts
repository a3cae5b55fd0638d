// Setup of the component tests: matchers, and browser APIs that jsdom lacks.
import "@testing-library/jest-dom/vitest";
import { act, cleanup, configure } from "@testing-library/react";
import { afterEach, beforeAll } from "vitest";

import { loadMenus } from "../ui/Menu";
import { loadPopovers } from "../ui/Popover";

configure({ asyncUtilTimeout: 20_000 }); // a limit for slow machines, not a wait
afterEach(() => {
  // Messages outlive the page: the next test would find those of this one, until their time is over.
  act(() => {
    for (const button of document.querySelectorAll<HTMLElement>("[data-toasts] button"))
      button.click();
  });
  cleanup();
});
// As some moments after the first page has been shown.
beforeAll(async () => {
  await Promise.all([loadMenus(), loadPopovers()]);
});

window.matchMedia ??= (query: string) => ({
  matches: false,
  media: query,
  onchange: null,
  addEventListener: () => undefined,
  removeEventListener: () => undefined,
  addListener: () => undefined,
  removeListener: () => undefined,
  dispatchEvent: () => false,
});
globalThis.ResizeObserver ??= class {
  observe() {}
  unobserve() {}
  disconnect() {}
};
window.scrollTo = () => undefined;
Element.prototype.scrollIntoView ??= () => undefined;
