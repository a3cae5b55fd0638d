import jsxA11y from "eslint-plugin-jsx-a11y";
import reactHooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

import rooms from "./eslint-rooms.js";

// tsc finds what has the wrong type; here is what it cannot see: hooks out of order, elements nobody can reach.
const MARKUP = {
  selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']",
  message: "Markup from data is how scripts get in; use Markdown or text.",
};
const BY_HAND = {
  selector: "MemberExpression[property.name=/^setQuer(y|ies)Data$/]",
  message:
    "A fetch under way would come back over it; use setKnown or setAhead (api/overtaken.ts).",
};
const COUNTS = {
  selector:
    "ConditionalExpression[test.operator='==='][test.right.value=1]:matches([consequent.type=/Literal$/], [alternate.type=/Literal$/])",
  message: "One or many is chosen in lib/words.ts: counted, plural.",
};

// What the browser gives may be called when the page goes: scrolling answers with a promise in newer browsers.
const ANSWERS = {
  selector:
    "CallExpression[callee.name=/^use(Layout)?Effect$/] > ArrowFunctionExpression[expression=true]:not([body.type='ArrowFunctionExpression'])",
  message: "What an effect gives back is called as its end; use braces.",
};

// While an input method composes, keys are its own.
const KEYS = {
  selector: "MemberExpression[object.name='event'][property.name='key']",
  message: "Which key was pressed is keyOf (ui/keys.ts): an input method's are not the page's.",
};

// A refresh may fail, as when the session has ended: what stands there stands on, with what was typed into it.
const LOST = [
  "IfStatement > MemberExpression.test[property.name='isError']",
  "ConditionalExpression:not([alternate.type='Literal']) > MemberExpression.test[property.name='isError']",
  "CallExpression[callee.property.name='find'] > ArrowFunctionExpression > MemberExpression.body[property.name='isError']",
  "LogicalExpression[operator='??'][right.property.name='error'] > MemberExpression.left[property.name='error']",
].map((selector) => ({
  selector,
  message:
    "A refresh that fails would take the page away, and what was typed there: use isLoadingError.",
}));

const A_SECOND = {
  selector: "CallExpression[callee.object.name='vi'][callee.property.name='waitFor']",
  message: "It gives up after a second, which says how fast a machine is; use soon (test/soon.ts).",
};

export default tseslint.config(
  { ignores: ["dist", "node_modules", "src/api/types.ts", "public"] },
  ...tseslint.configs.recommended,
  jsxA11y.flatConfigs.recommended,
  {
    plugins: { "react-hooks": reactHooks, rooms },
    rules: {
      "rooms/imports": "error",
      "react-hooks/rules-of-hooks": "error",
      "react-hooks/exhaustive-deps": "error",
      "@typescript-eslint/no-unused-vars": [
        "error",
        { argsIgnorePattern: "^_", varsIgnorePattern: "^_" },
      ],
      "no-restricted-syntax": ["error", MARKUP, BY_HAND, COUNTS, ANSWERS, KEYS, A_SECOND, ...LOST],
      // The search field of a list that has just been opened is where the person is.
      "jsx-a11y/no-autofocus": "off",
      // A log or code block that scrolls has to be reachable by keyboard.
      "jsx-a11y/no-noninteractive-tabindex": "off",
      "jsx-a11y/label-has-associated-control": ["error", { assert: "either", depth: 3 }],
    },
  },
  {
    files: ["src/api/overtaken.ts"],
    rules: { "no-restricted-syntax": ["error", MARKUP, COUNTS, ANSWERS, KEYS] },
  },
  {
    files: ["src/lib/words.ts"],
    rules: { "no-restricted-syntax": ["error", MARKUP, BY_HAND, ANSWERS, KEYS] },
  },
  {
    files: ["src/test/soon.ts"],
    rules: { "no-restricted-syntax": ["error", MARKUP, BY_HAND, COUNTS, ANSWERS, KEYS] },
  },
  // Keys outside of fields have no input method.
  {
    files: ["src/ui/keys.ts", "src/app/frame/shortcuts.ts"],
    rules: { "no-restricted-syntax": ["error", MARKUP, BY_HAND, COUNTS, ANSWERS] },
  },
);
