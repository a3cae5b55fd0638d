// The terminal's colours: the theme's own, with a minimum contrast for those of programs.

/** Minimum contrast of text: programs usually choose colours for a dark background. */
export const READABLE = 4.5;

const HUES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;

function colours(element: Element) {
  const style = getComputedStyle(element);
  return (name: string) => style.getPropertyValue(name).trim();
}

/**
 * Bright colours come from the theme, as in every log of the dashboard: xterm's own are designed
 * for black.
 */
export function themeOf(element: Element) {
  const colour = colours(element);
  const hues = HUES.flatMap((hue) =>
    [hue, `bright${hue.charAt(0).toUpperCase()}${hue.slice(1)}`].map(
      (name) => [name, colour(`--ansi-${hue}`)] as const,
    ),
  );
  return {
    background: colour("--bg"),
    foreground: colour("--text"),
    cursor: colour("--accent-text"),
    selectionBackground: colour("--selected"),
    ...(Object.fromEntries(hues) as Record<string, string>),
  };
}

/** Highlighting of search matches. */
export function marksOf() {
  const colour = colours(document.documentElement);
  return {
    matchBackground: colour("--warn-soft"),
    matchOverviewRuler: colour("--warn"),
    activeMatchBackground: colour("--selected"),
    activeMatchBorder: colour("--accent"),
    activeMatchColorOverviewRuler: colour("--accent"),
  };
}
