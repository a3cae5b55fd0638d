// How the build cuts scripts: each request costs headers and a place in the queue, so that what the
// first page needs is two files, and small shared modules do not become files of their own.
import type { Rollup } from "vite";

const VENDOR =
  /\/node_modules\/(?:react|react-dom|scheduler|react-router|cookie|set-cookie-parser|@tanstack\/(?:react-query|query-core))\//;
/** The page after signing in: most others use its tables, filters and menus. */
const FIRST = ["/src/main.tsx", "/src/pages/workspaces/WorkspacesPage.tsx"];
/** Modules of some hundred bytes that many pages import. */
const SMALL = /\/lucide-react\/dist\/esm\/icons\/|\/src\/(?:lib|api)\//;

const ICON = /\/lucide-react\/dist\/esm\/icons\/([^/]+)\.m?js$/;
const ICON_INDEX = /\/lucide-react\/dist\/esm\/lucide-react\.m?js$/;
const ICON_EXPORT = /export\s*\{([^}]*)\}\s*from\s*["']\.\/icons\/([^"']+)\.m?js["']/g;
const ICON_IMPORT = /import\s*\{([^}]*)\}\s*from\s*["']lucide-react["']/g;

/** Return Rollup's `manualChunks` function: the name of a module's chunk, or nothing to leave it to Rollup. */
export function chunkNames(): Rollup.GetManualChunk {
  let first: Set<string> | undefined;
  let icons: Set<string> | undefined;
  return (id, { getModuleInfo, getModuleIds }) => {
    if (VENDOR.test(id)) return "vendor";
    first ??= staticImports(
      [...getModuleIds()].filter((name) => FIRST.some((suffix) => name.endsWith(suffix))),
      getModuleInfo,
    );
    icons ??= iconFiles(first, getModuleInfo);
    const icon = ICON.exec(id)?.[1];
    if (icon === undefined ? first.has(id) : icons.has(icon)) return "first";
    return SMALL.test(id) ? "small" : undefined;
  };
}

function staticImports(roots: string[], getModuleInfo: Rollup.GetModuleInfo): Set<string> {
  const found = new Set<string>();
  const waiting = [...roots];
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    if (found.has(id)) continue;
    found.add(id);
    waiting.push(...(getModuleInfo(id)?.importedIds ?? []));
  }
  return found;
}

/** Return the file names of the icons that modules import: the package's index imports all of them. */
function iconFiles(modules: Set<string>, getModuleInfo: Rollup.GetModuleInfo): Set<string> {
  const code = (id: string) => getModuleInfo(id)?.code ?? "";
  const fileOf = new Map<string, string>();
  for (const id of modules) {
    if (!ICON_INDEX.test(id)) continue;
    for (const [, names = "", file = ""] of code(id).matchAll(ICON_EXPORT))
      for (const name of names.split(","))
        fileOf.set(name.split(" as ").at(-1)?.trim() ?? "", file);
  }
  const files = new Set<string>();
  for (const id of modules) {
    if (id.includes("/node_modules/")) continue;
    for (const [, names = ""] of code(id).matchAll(ICON_IMPORT))
      for (const name of names.split(","))
        files.add(fileOf.get(name.split(" as ")[0]?.trim() ?? "") ?? "");
  }
  return files;
}
