// Light or dark mode, colour vision, and the terminal font. A choice is applied and saved at once.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import { put } from "../../api/client";
import { changeOptimistically, shownIn } from "../../api/optimistic";
import { myAppearance } from "../../api/queries/session";
import type { UserAppearanceSettings } from "../../api/types";
import { isTheme, type Theme } from "../../features/appearance/theme";
import { Section } from "../../ui/Card";
import { cx } from "../../ui/cx";
import { Failure } from "../../ui/Failure";
import { Combobox } from "../../ui/forms/Combobox";
import { RadioCards } from "../../ui/forms/RadioCards";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead, Stack } from "../../ui/Page";
import {
  DEFAULT_FONT,
  loadTerminalFont,
  TERMINAL_FONTS,
  terminalFamily,
} from "../../ui/text/terminal-fonts";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";

const LIGHT: readonly (readonly [Theme, string, string])[] = [
  ["light", "Light", "Default."],
  ["light-contrast", "Light high contrast", "Contrast of at least 7:1 (AAA)."],
  [
    "light-protan-deuter",
    "Light (Protanopia & Deuteranopia)",
    "Red and green are shown as blue and orange.",
  ],
  ["light-tritan", "Light (Tritanopia)", "Blue and yellow are shown as teal and red."],
];
const DARK: readonly (readonly [Theme, string, string])[] = [
  ["dark", "Dark", "Default."],
  ["dark-contrast", "Dark high contrast", "Contrast of at least 7:1 (AAA)."],
  [
    "dark-protan-deuter",
    "Dark (Protanopia & Deuteranopia)",
    "Red and green are shown as blue and orange.",
  ],
  ["dark-tritan", "Dark (Tritanopia)", "Blue and yellow are shown as teal and red."],
];

export function AppearancePage() {
  useTitle("Settings");
  const settings = useQuery({ ...myAppearance, staleTime: 0 });
  return (
    <>
      <PageHead title="Appearance" description="Applies to you only, on every device." />
      {settings.isPending ? <SkeletonRows rows={3} /> : null}
      {settings.isError ? (
        <Failure error={settings.error} retry={() => void settings.refetch()} />
      ) : null}
      {settings.data ? <Choices settings={settings.data} /> : null}
    </>
  );
}

// The server rejects an unset value: send the default instead.
const completed = (settings: UserAppearanceSettings): UserAppearanceSettings => ({
  ...settings,
  theme_preference: settings.theme_preference || "auto",
  terminal_font: settings.terminal_font || DEFAULT_FONT,
});

/** A choice applies from the click on; one that could not be saved is rolled back. */
function Choices({ settings }: { settings: UserAppearanceSettings }) {
  const queries = useQueryClient();
  const save = (changes: Partial<UserAppearanceSettings>) => {
    const change = (now: UserAppearanceSettings) => ({ ...completed(now), ...changes });
    // Built from the shown settings, including choices in flight: each request contains all settings.
    const next = change(queries.getQueryData(myAppearance.queryKey) ?? settings);
    changeOptimistically(queries, [shownIn(myAppearance.queryKey, change)], () =>
      put<UserAppearanceSettings>("/api/v2/users/me/appearance", next),
    ).catch((error: unknown) => toast.failed("Failed to save appearance settings", error));
  };
  const single = settings.theme_mode !== "sync" && isTheme(settings.theme_preference);
  const light = isTheme(settings.theme_light) ? settings.theme_light : "light";
  const dark = isTheme(settings.theme_dark) ? settings.theme_dark : "dark";
  const now = document.documentElement.dataset["theme"] ?? "light";
  const saveSingle = (theme: Theme) => save({ theme_mode: "single", theme_preference: theme });
  return (
    <Stack>
      <Section title="Theme">
        <Stack className="gap-6">
          <div className="max-w-72">
            <Combobox
              label="Theme mode"
              value={single ? "single" : "sync"}
              onChange={(mode) =>
                mode === "sync"
                  ? save({
                      theme_mode: "sync",
                      theme_preference: "auto",
                      theme_light: light,
                      theme_dark: dark,
                    })
                  : saveSingle(isTheme(now) ? now : "light")
              }
              hint={
                single ? "Always uses the same theme." : "Follows your system's light or dark mode."
              }
              options={[
                { value: "sync", text: "Sync with system" },
                { value: "single", text: "Single theme" },
              ]}
            />
          </div>
          {single ? (
            <ThemeGrid
              legend="Theme"
              value={settings.theme_preference}
              themes={[...LIGHT, ...DARK]}
              onChange={saveSingle}
            />
          ) : (
            <>
              <ThemeGrid
                legend="Light theme"
                value={light}
                themes={LIGHT}
                onChange={(theme) =>
                  save({
                    theme_mode: "sync",
                    theme_preference: "auto",
                    theme_light: theme,
                    theme_dark: dark,
                  })
                }
              />
              <ThemeGrid
                legend="Dark theme"
                value={dark}
                themes={DARK}
                onChange={(theme) =>
                  save({
                    theme_mode: "sync",
                    theme_preference: "auto",
                    theme_light: light,
                    theme_dark: theme,
                  })
                }
              />
            </>
          )}
        </Stack>
      </Section>
      <Fonts value={settings.terminal_font} onChange={(terminal_font) => save({ terminal_font })} />
    </Stack>
  );
}

function ThemeGrid({
  legend,
  value,
  themes,
  onChange,
}: {
  legend: string;
  value: string;
  themes: readonly (readonly [Theme, string, string])[];
  onChange: (theme: Theme) => void;
}) {
  return (
    <fieldset>
      <legend className="mb-2 text-base font-medium">{legend}</legend>
      <div className="grid grid-cols-2 gap-3 max-sm:grid-cols-1">
        {themes.map(([theme, name, hint]) => (
          <label
            key={theme}
            className={cx(
              "flex flex-col overflow-hidden rounded-lg border border-line bg-surface",
              "hover:border-line-strong has-checked:border-accent has-checked:ring-1",
              "has-checked:ring-accent has-focus-visible:outline-2",
            )}
          >
            <Preview theme={theme} />
            <span className="flex items-start gap-2 px-3 py-2">
              <input
                type="radio"
                name={legend}
                className="mt-0.5 shrink-0"
                aria-label={name}
                checked={value === theme}
                onChange={() => onChange(theme)}
              />
              <span className="min-w-0">
                <span className="block font-medium">{name}</span>
                <span className="block text-sm text-muted">{hint}</span>
              </span>
            </span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

/**
 * A miniature page in the colours of that theme: its tokens apply below the element that names it.
 */
function Preview({ theme }: { theme: Theme }) {
  const line = "h-1.5 rounded-full";
  return (
    <span data-theme={theme} aria-hidden="true" className="block border-b border-line bg-bg p-2.5">
      <span className="flex flex-col gap-1.5 rounded-md border border-line bg-surface p-2">
        <span className="flex items-center justify-between">
          <span className={cx(line, "w-1/3 bg-text")} />
          <span className="h-2.5 w-7 rounded-sm bg-accent" />
        </span>
        <span className={cx(line, "w-2/3 bg-muted")} />
        <span className="mt-1 flex gap-1.5">
          {["bg-good", "bg-warn", "bg-bad", "bg-busy", "bg-idle"].map((tone) => (
            <span key={tone} className={cx("size-2.5 rounded-full", tone)} />
          ))}
        </span>
      </span>
    </span>
  );
}

function Fonts({ value, onChange }: { value: string; onChange: (font: string) => void }) {
  useEffect(() => {
    for (const name of Object.keys(TERMINAL_FONTS)) void loadTerminalFont(name);
  }, []);
  return (
    <Section title="Terminal font" description="Used by the web terminal.">
      <RadioCards
        label="Font"
        columns
        value={value || DEFAULT_FONT}
        onChange={onChange}
        options={Object.entries(TERMINAL_FONTS).map(([name, font]) => ({
          value: name,
          text: font.name,
          hint: (
            <span style={{ fontFamily: terminalFamily(name) }} className="text-text">
              $ ls -l 0O 1lI {"=>"} {"{}"}
            </span>
          ),
        }))}
      />
    </Section>
  );
}
