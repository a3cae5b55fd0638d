// Import rules below src. rooms.json lists the rooms and the features from top to bottom: a file imports only from its own
// room or a lower one, and a page only pages of its own area. scripts/lint_report.py counts with the same file.
import fs from "node:fs";
import path from "node:path";

const SRC = path.resolve(import.meta.dirname, "src");
const { rooms, features } = JSON.parse(
  fs.readFileSync(path.resolve(import.meta.dirname, "rooms.json"), "utf8"),
);

/** @param {string} file an absolute path, with or without its suffix */
function standing(file) {
  const [room = "", area = ""] = path.relative(SRC, file).split(path.sep);
  return { room: rooms.includes(room) || room === "test" ? room : "app", area };
}

/** What is wrong with an import; null for nothing. */
export function wrongImport(from, to) {
  const source = standing(from);
  const target = standing(to);
  if (source.room === "test") return null;
  if (target.room === "test") {
    return /\.test\.tsx?$/.test(from) ? null : "Only tests import src/test.";
  }
  if (rooms.indexOf(target.room) < rooms.indexOf(source.room)) {
    return `${source.room}/ must not import ${target.room}/: the order is ${rooms.join(" > ")}.`;
  }
  if (source.room === "pages" && target.room === "pages" && source.area !== target.area) {
    return `Pages of ${source.area} must not import those of ${target.area}: move what both need to features/.`;
  }
  if (source.room === "features" && target.room === "features") {
    const [above, below] = [source.area, target.area].map((area) => features.indexOf(area));
    if (above < 0 || below < 0) return "A folder of features/ is missing from rooms.json.";
    if (below < above) {
      return `features/${source.area} must not import features/${target.area}: rooms.json has it further up.`;
    }
  }
  return null;
}

/** Static imports and exports, `import()`, type imports. */
const importsOfRooms = {
  meta: { type: "problem", schema: [] },
  create(context) {
    const look = (node) => {
      const specifier = node.source?.value;
      if (typeof specifier !== "string" || !specifier.startsWith(".")) return;
      const file = context.filename;
      const message = wrongImport(file, path.resolve(path.dirname(file), specifier));
      if (message !== null) context.report({ node: node.source, message });
    };
    return {
      ImportDeclaration: look,
      ExportAllDeclaration: look,
      ExportNamedDeclaration: look,
      ImportExpression: look,
    };
  },
};

export default { rules: { imports: importsOfRooms } };
