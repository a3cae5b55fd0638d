// The fonts of terminals. Each is loaded when it is selected; JetBrains Mono is always there.
const LATIN = '"JetBrains Mono Variable", ui-monospace, SFMono-Regular, Menlo, Consolas, monospace';

interface TerminalFont {
  name: string;
  family: string;
  load?: () => Promise<unknown>;
}

/** The default for users who have not chosen; the API always requires a name. */
export const DEFAULT_FONT = "jetbrains-mono";

/** By the names in the API. */
export const TERMINAL_FONTS: Readonly<Record<string, TerminalFont>> = {
  "ibm-plex-mono": {
    name: "IBM Plex Mono",
    family: "IBM Plex Mono",
    load: () =>
      Promise.all([
        import("@fontsource/ibm-plex-mono/400.css"),
        import("@fontsource/ibm-plex-mono/700.css"),
      ]),
  },
  "fira-code": {
    name: "Fira Code",
    family: "Fira Code Variable",
    load: () => import("@fontsource-variable/fira-code/index.css"),
  },
  "source-code-pro": {
    name: "Source Code Pro",
    family: "Source Code Pro Variable",
    load: () => import("@fontsource-variable/source-code-pro/index.css"),
  },
  "geist-mono": {
    name: "Geist Mono",
    family: "Geist Mono Variable",
    load: () => import("@fontsource-variable/geist-mono/index.css"),
  },
  [DEFAULT_FONT]: { name: "JetBrains Mono (default)", family: "JetBrains Mono Variable" },
};

export function terminalFamily(name: string): string {
  const font = TERMINAL_FONTS[name || DEFAULT_FONT];
  return font ? `"${font.family}", ${LATIN}` : LATIN;
}

/** Resolves when the font can be measured. */
export async function loadTerminalFont(name: string): Promise<void> {
  const font = TERMINAL_FONTS[name || DEFAULT_FONT];
  if (!font) return;
  await font.load?.();
  await document.fonts.load(`14px "${font.family}"`);
}
