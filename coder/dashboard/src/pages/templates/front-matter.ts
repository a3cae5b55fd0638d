// What stands between two "---" lines at the head of a template's README: its names and its icon, for galleries.
export interface FrontMatter {
  display_name: string;
  description: string;
  icon: string;
}

const MATTER = /^\uFEFF?---\r?\n(.*?\r?\n)?---\r?\n/s;
/** As many characters as a template's field takes. */
const LONGEST = { display_name: 64, description: 128, icon: 256 } as const;

/** The text behind it: all of a README that has none. */
export const withoutFrontMatter = (readme: string): string => readme.replace(MATTER, "");

/** Single lines of YAML, which is what these are; what is more than that is left for whoever reads it. */
export function frontMatter(readme: string): FrontMatter {
  const found: FrontMatter = { display_name: "", description: "", icon: "" };
  for (const line of (MATTER.exec(readme)?.[1] ?? "").split(/\r?\n/)) {
    const [, key = "", raw = ""] =
      /^(display_name|description|icon):[ \t]+(\S.*)$/.exec(line) ?? [];
    if (key !== "display_name" && key !== "description" && key !== "icon") continue;
    const value = plain(raw.trim());
    if (value !== null) found[key] = cut(key === "icon" ? iconPath(value) : value, LONGEST[key]);
  }
  return found;
}

/** A scalar's value; null for what goes on over lines, or is no text. */
function plain(raw: string): string | null {
  const quoted =
    /^"((?:[^"\\]|\\.)*)"\s*(?:#.*)?$/.exec(raw) ?? /^'((?:[^']|'')*)'\s*(?:#.*)?$/.exec(raw);
  if (quoted)
    return raw.startsWith("'")
      ? (quoted[1] ?? "").replaceAll("''", "'")
      : (quoted[1] ?? "").replace(/\\(["\\/])/g, "$1");
  return /^[|>&*!{["'%@`]/.test(raw) ? null : raw.replace(/\s+#.*$/, "");
}

// Registries name icons by where they lie in their own files.
const iconPath = (value: string): string =>
  value.startsWith(".") ? value.replace(/^.*\/icon\//, "/icon/") : value;

function cut(value: string, longest: number): string {
  const letters = [...value];
  return letters.length > longest ? `${letters.slice(0, longest - 1).join("")}…` : value;
}
