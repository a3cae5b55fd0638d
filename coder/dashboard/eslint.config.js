import jsxA11y from "eslint-plugin-jsx-a11y";
import reactHooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

// tsc finds what has the wrong type; here is what it cannot see: hooks out of order, elements nobody can reach.
const MARKUP = { selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']", message: "Markup from data is how scripts get in; use Markdown or text." };
const BY_HAND = { selector: "MemberExpression[property.name=/^setQuer(y|ies)Data$/]", message: "A fetch under way would come back over it; use setKnown or setAhead (api/overtaken.ts)." };
const COUNTS = { selector: "ConditionalExpression[test.operator='==='][test.right.value=1]:matches([consequent.type=/Literal$/], [alternate.type=/Literal$/])", message: "One or many is chosen in ui/words.ts: counted, plural." };

export default tseslint.config(
  { ignores: ["dist", "node_modules", "src/api/types.ts", "public"] },
  ...tseslint.configs.recommended,
  jsxA11y.flatConfigs.recommended,
  {
    plugins: { "react-hooks": reactHooks },
    rules: {
      "react-hooks/rules-of-hooks": "error",
      "react-hooks/exhaustive-deps": "error",
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_" }],
      "no-restricted-syntax": ["error", MARKUP, BY_HAND, COUNTS],
      // The search field of a list that has just been opened is where the person is.
      "jsx-a11y/no-autofocus": "off",
      // A log or code block that scrolls has to be reachable by keyboard.
      "jsx-a11y/no-noninteractive-tabindex": "off",
      "jsx-a11y/label-has-associated-control": ["error", { assert: "either", depth: 3 }],
    },
  },
  { files: ["src/api/overtaken.ts"], rules: { "no-restricted-syntax": ["error", MARKUP, COUNTS] } },
  { files: ["src/ui/words.ts"], rules: { "no-restricted-syntax": ["error", MARKUP, BY_HAND] } },
);
