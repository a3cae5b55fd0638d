// The theme of the page: the user's setting, or the system's preference. The browser remembers the
// choice for `public/theme.js`, which applies it before the first paint.
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";

import { me, myAppearance } from "../../api/queries/session";
import type { UserAppearanceSettings } from "../../api/types";

export const THEMES = [
  "light",
  "dark",
  "light-contrast",
  "dark-contrast",
  "light-protan-deuter",
  "dark-protan-deuter",
  "light-tritan",
  "dark-tritan",
] as const;
export type Theme = (typeof THEMES)[number];

const STORED = "coder-theme";

export function isTheme(name: string): name is Theme {
  return (THEMES as readonly string[]).includes(name);
}

/** The theme for these settings; `dark` and `contrast` are the system's preferences. */
export function themeFor(
  settings: UserAppearanceSettings | undefined,
  dark: boolean,
  contrast: boolean,
): Theme {
  const automatic = dark
    ? contrast
      ? "dark-contrast"
      : "dark"
    : contrast
      ? "light-contrast"
      : "light";
  if (!settings) return automatic;
  if (settings.theme_mode === "sync") {
    const chosen = dark ? settings.theme_dark : settings.theme_light;
    return isTheme(chosen) && !(contrast && chosen === (dark ? "dark" : "light"))
      ? chosen
      : automatic;
  }
  return isTheme(settings.theme_preference) ? settings.theme_preference : automatic;
}

export function applyTheme(theme: Theme, remembered: string): void {
  document.documentElement.dataset["theme"] = theme;
  document.documentElement.className = theme.startsWith("dark") ? "dark" : "light"; // read by browser extensions and tests
  try {
    localStorage.setItem(STORED, remembered);
  } catch {
    // storage is switched off: the next page begins in the system's theme
  }
}

export function useTheme(): void {
  const user = useQuery(me);
  const settings = useQuery({ ...myAppearance, enabled: Boolean(user.data) }).data;
  useEffect(() => {
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    const contrast = window.matchMedia("(prefers-contrast: more)");
    const apply = () => {
      const theme = themeFor(settings, dark.matches, contrast.matches);
      const fixed =
        settings !== undefined &&
        settings.theme_mode !== "sync" &&
        isTheme(settings.theme_preference);
      applyTheme(theme, fixed ? theme : "auto");
    };
    apply();
    dark.addEventListener("change", apply);
    contrast.addEventListener("change", apply);
    return () => {
      dark.removeEventListener("change", apply);
      contrast.removeEventListener("change", apply);
    };
  }, [settings]);
}
