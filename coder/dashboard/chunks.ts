// How the build cuts scripts: each request costs headers and a place in the queue, so that what the
// first page needs is two files, and small shared modules do not become files of their own.
import type { Rollup } from "vite";

const VENDOR =
  /\/node_modules\/(?:react|react-dom|scheduler|react-router|cookie|set-cookie-parser|@tanstack\/(?:react-query|query-core))\//;
/** The page after signing in: most others use its tables, filters and menus. */
const FIRST = ["/src/main.tsx", "/src/pages/workspaces/WorkspacesPage.tsx"];
/** Modules of some hundred bytes that many pages import. */
const SMALL = /\/lucide-react\/dist\/esm\/icons\/|\/src\/(?:lib|api)\//;

/** Menus, tabs and switches, and what they share; forms need none of them. */
const CONTROLS =
  /\/node_modules\/@radix-ui\/react-(?:menu|dropdown-menu|tabs|checkbox|switch|roving-focus|collection)\/|\/src\/ui\/overlay\/Menu/;
/** Panels and what they are positioned with: loaded after the first page, which needs the rest of the library. */
const OVERLAYS = /\/node_modules\/(?:@radix-ui|@floating-ui)\/|\/src\/ui\/overlay\/[A-Z]/;

const ICON = /\/lucide-react\/dist\/esm\/icons\/([^/]+)\.m?js$/;
const ICON_INDEX = /\/lucide-react\/dist\/esm\/lucide-react\.m?js$/;
const ICON_EXPORT = /export\s*\{([^}]*)\}\s*from\s*["']\.\/icons\/([^"']+)\.m?js["']/g;
const PARTS_INDEX = /\/radix-ui\/dist\/index\.m?js$/;
const PARTS_IMPORT = /import\s*\{([^}]*)\}\s*from\s*["']radix-ui["']/g;
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
    // Without a name of its own, Rollup adds it to the chunk of the package's index.
    if (CONTROLS.test(id)) return "controls";
    if (OVERLAYS.test(id)) return "overlays";
    return SMALL.test(id) ? "small" : undefined;
  };
}

function staticImports(roots: string[], getModuleInfo: Rollup.GetModuleInfo): Set<string> {
  const found = new Set<string>();
  const waiting = [...roots];
  const parts: string[] = [];
  const add = (id: string) => {
    found.add(id);
    const { importedIds = [], code = "" } = getModuleInfo(id) ?? {};
    if (PARTS_INDEX.test(id)) return parts.push(...importedIds);
    const names = [...(code ?? "").matchAll(PARTS_IMPORT)].flatMap(([, list = ""]) =>
      list.split(","),
    );
    for (const folder of names.map(partFolder)) wanted.add(folder);
    return waiting.push(...importedIds);
  };
  const wanted = new Set<string>();
  const isWanted = (id: string) => [...wanted].some((folder) => id.includes(folder));
  while (waiting.length > 0) {
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) if (!found.has(id)) add(id);
    waiting.push(...parts.filter((id) => !found.has(id) && isWanted(id)));
  }
  return found;
}

/** Return the folder of a component, of an entry in an import's list: that of `DropdownMenu as Menu` is react-dropdown-menu. */
function partFolder(entry: string): string {
  const name = entry.split(" as ")[0]?.trim() ?? "";
  return `/@radix-ui/react-${name.replace(/(?<=[a-z])(?=[A-Z])/g, "-").toLowerCase()}/`;
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
