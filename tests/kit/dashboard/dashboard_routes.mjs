// The dashboard's table of routes as JSON: [{"pattern": "/templates/:template/docs", "redirect": null}, …].
//   node tests/kit/dashboard/dashboard_routes.mjs coder/dashboard
// Taken from the source itself: src/app/routes is bundled with empty pages in place of the real ones, then read.
import { createRequire } from "node:module";
import path from "node:path";

const root = path.resolve(process.argv[2] ?? ".");
const require = createRequire(path.join(root, "package.json"));
const { build } = createRequire(require.resolve("vite"))("esbuild");

const emptyPages = {
  name: "empty-pages",
  setup(plugin) {
    plugin.onLoad({ filter: /src[\\/](?:pages|ui)[\\/]/ }, () => ({ contents: "export const NotFoundPage = () => null;", loader: "js" }));
  },
};

const made = await build({
  entryPoints: [path.join(root, "src/app/routes/index.tsx")],
  bundle: true, write: false, format: "esm", platform: "node", jsx: "automatic",
  define: { "import.meta.env.DEV": "false" },
  external: ["react", "react/jsx-runtime", "react-router"],
  plugins: [emptyPages], logLevel: "error",
});
// Beside the packages, so that what it imports is found; never written to disk.
const source = made.outputFiles[0].text.replace(/from "(react|react\/jsx-runtime|react-router)"/g, (_, name) => `from "${pathToModule(name)}"`);
const table = await import(`data:text/javascript;base64,${Buffer.from(source).toString("base64")}`);

function pathToModule(name) {
  return new URL(`file://${require.resolve(name)}`).href;
}

function flat(routes, above = "") {
  return routes.flatMap((route) => {
    const pattern = route.path?.startsWith("/") ? route.path : [above.replace(/\/$/, ""), route.path].filter(Boolean).join("/");
    const target = route.element?.props?.to ?? null;
    const own = route.children ? [] : [{ pattern: pattern || "/", redirect: target }];
    return [...own, ...flat(route.children ?? [], pattern)];
  });
}

const every = ["openRoutes", "bareRoutes", "framedRoutes", "openFramedRoutes"].flatMap((name) => flat(table[name]));
process.stdout.write(JSON.stringify(every));
