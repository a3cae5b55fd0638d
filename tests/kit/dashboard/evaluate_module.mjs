// Evaluates an expression over a module of the dashboard's sources and prints the result as JSON.
//   node tests/kit/dashboard/evaluate_module.mjs coder/dashboard FILE EXPRESSION ARGUMENT
// In the expression, `module` has the module's exports and `argument` the parsed JSON.
import { createRequire } from "node:module";
import path from "node:path";

const [root, file, expression, argument] = process.argv.slice(2);
const require = createRequire(path.join(path.resolve(root), "package.json"));
const { build } = createRequire(require.resolve("vite"))("esbuild");
const made = await build({ entryPoints: [file], bundle: true, write: false, format: "esm", platform: "node", logLevel: "error" });
const module = await import(`data:text/javascript;base64,${Buffer.from(made.outputFiles[0].text).toString("base64")}`);
const result = new Function("module", "argument", `return ${expression};`)(module, JSON.parse(argument));
console.log(JSON.stringify(result));
