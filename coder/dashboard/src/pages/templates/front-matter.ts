// The front matter of a template's README, between two "---" lines: names and icon for galleries.
export interface FrontMatter {
  display_name: string;
  description: string;
  icon: string;
}

const MATTER = /^\uFEFF?---\r?\n(.*?\r?\n)?---\r?\n/s;
/** The maximum length of a template's field. */
const LONGEST = { display_name: 64, description: 128, icon: 256 } as const;

/** The text after the front matter: the whole README if it has none. */
export const withoutFrontMatter = (readme: string): string => readme.replace(MATTER, "");

/** Single lines of YAML, the usual form; anything more complex is ignored. */
export function frontMatter(readme: string): FrontMatter {
  const fields: FrontMatter = { display_name: "", description: "", icon: "" };
  for (const line of (MATTER.exec(readme)?.[1] ?? "").split(/\r?\n/)) {
    const [, key = "", raw = ""] =
      /^(display_name|description|icon):[ \t]+(\S.*)$/.exec(line) ?? [];
    if (key !== "display_name" && key !== "description" && key !== "icon") continue;
    const value = plain(raw.trim());
    if (value !== null) fields[key] = cut(key === "icon" ? iconPath(value) : value, LONGEST[key]);
  }
  return fields;
}

/** The value of a scalar; null for multi-line values and values that are not text. */
function plain(raw: string): string | null {
  const quoted =
    /^"((?:[^"\\]|\\.)*)"\s*(?:#.*)?$/.exec(raw) ?? /^'((?:[^']|'')*)'\s*(?:#.*)?$/.exec(raw);
  if (quoted)
    return raw.startsWith("'")
      ? (quoted[1] ?? "").replaceAll("''", "'")
      : (quoted[1] ?? "").replace(/\\(["\\/])/g, "$1");
  return /^[|>&*!{["'%@`]/.test(raw) ? null : raw.replace(/\s+#.*$/, "");
}

// Registries give icons as paths within their own repository.
const iconPath = (value: string): string =>
  value.startsWith(".") ? value.replace(/^.*\/icon\//, "/icon/") : value;

function cut(value: string, longest: number): string {
  const letters = [...value];
  return letters.length > longest ? `${letters.slice(0, longest - 1).join("")}…` : value;
}
