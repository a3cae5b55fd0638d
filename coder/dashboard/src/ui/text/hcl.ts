// Syntax colours for Terraform's language: comments, strings with interpolations, block heads,
// attributes.
import type { StreamParser } from "@codemirror/language";

interface State {
  block: boolean;
  heredoc: string;
  heredocStarts: string;
}

const BLOCK_WORDS =
  "resource data variable output locals module provider terraform moved import check dynamic " +
  "lifecycle provisioner connection required_providers backend";
const BLOCKS = new RegExp(`^(?:${BLOCK_WORDS.replaceAll(" ", "|")})\\b`);

export const hcl: StreamParser<State> = {
  name: "hcl",
  startState: () => ({ block: false, heredoc: "", heredocStarts: "" }),
  token(stream, state) {
    if (stream.sol()) {
      state.block = true;
      if (state.heredocStarts) {
        state.heredoc = state.heredocStarts;
        state.heredocStarts = "";
      }
      if (state.heredoc) {
        const line = stream.string.trim();
        if (line === state.heredoc) state.heredoc = "";
        stream.skipToEnd();
        return "string";
      }
    }
    if (stream.eatSpace()) return null;
    if (state.block && stream.match(BLOCKS)) {
      state.block = false;
      return "keyword";
    }
    state.block = false;
    if (stream.match(/^(?:#|\/\/).*/)) return "comment";
    if (stream.match("/*")) {
      while (!stream.match("*/") && stream.next() !== undefined);
      return "comment";
    }
    const heredoc = stream.match(/^<<[-~]?(\w+)/);
    if (heredoc && typeof heredoc !== "boolean") {
      state.heredocStarts = heredoc[1] ?? "";
      return "string";
    }
    if (stream.match(/^"(?:[^"\\]|\\.)*"?/)) return "string";
    if (stream.match(/^-?\d+(?:\.\d+)?\b/)) return "number";
    if (stream.match(/^(?:true|false|null)\b/)) return "atom";
    if (stream.match(/^(?:for|in|if|each|count|self|var|local|path)\b/)) return "keyword";
    if (stream.match(/^[A-Za-z_][\w-]*(?=\s*=(?!=))/)) return "propertyName";
    if (stream.match(/^[A-Za-z_][\w-]*(?=\()/)) return "typeName";
    if (stream.match(/^[A-Za-z_][\w-]*/)) return null;
    stream.next();
    return null;
  },
  languageData: { commentTokens: { line: "#" } },
};
