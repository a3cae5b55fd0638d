// The palette's commands that change the theme: "switch to dark", "switch to system".
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Command } from "cmdk";

import { put } from "../../api/client";
import { setServerData } from "../../api/optimistic";
import { myAppearance } from "../../api/queries/session";
import type { UserAppearanceSettings } from "../../api/types";
import { DEFAULT_FONT } from "../../ui/text/terminal-fonts";
import { toast } from "../../ui/toast";

export function PaletteThemes({ className, onClose }: { className: string; onClose: () => void }) {
  const queries = useQueryClient();
  const settings = useQuery(myAppearance).data;
  const choose = async (theme: "dark" | "light" | "system") => {
    if (!settings) return;
    const terminal_font = settings.terminal_font || DEFAULT_FONT;
    const next = { ...settings, terminal_font, ...themeSettings(theme, settings) };
    const saved = await put<UserAppearanceSettings>("/api/v2/users/me/appearance", next);
    setServerData(queries, myAppearance.queryKey, saved);
  };
  return (["dark", "light", "system"] as const).map((theme) => (
    <Command.Item
      key={theme}
      className={className}
      value={`switch to ${theme} theme`}
      onSelect={() => {
        onClose();
        void choose(theme).catch((error: unknown) =>
          toast.failed("Failed to change the theme", error),
        );
      }}
    >
      Switch to {theme} theme
    </Command.Item>
  ));
}

/** The settings of a theme; the system's follows its light and dark mode. */
function themeSettings(
  theme: "dark" | "light" | "system",
  settings: UserAppearanceSettings,
): Partial<UserAppearanceSettings> {
  if (theme !== "system") return { theme_mode: "single", theme_preference: theme };
  return {
    theme_mode: "sync",
    theme_preference: "auto",
    theme_light: settings.theme_light || "light",
    theme_dark: settings.theme_dark || "dark",
  };
}
