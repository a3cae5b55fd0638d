import jsxA11y from "eslint-plugin-jsx-a11y";
import reactHooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

import rooms from "./eslint-rooms.js";

// Rules beyond the reach of tsc: the order of hooks, accessibility, and the conventions of this code.
const MARKUP = {
  selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']",
  message: "Markup from data allows script injection; use Markdown or text.",
};
const SET_DATA = {
  selector: "MemberExpression[property.name=/^setQuer(y|ies)Data$/]",
  message:
    "A fetch in flight would overwrite it; use setServerData or changeOptimistically (api/optimistic.ts).",
};
const COUNTS = {
  selector:
    "ConditionalExpression[test.operator='==='][test.right.value=1]:matches([consequent.type=/Literal$/], [alternate.type=/Literal$/])",
  message: "Choose singular or plural with counted or plural of lib/words.ts.",
};

// React calls the result of an effect on cleanup, but scrolling returns a promise in newer browsers.
const EFFECT_RESULT = {
  selector:
    "CallExpression[callee.name=/^use(Layout)?Effect$/] > ArrowFunctionExpression[expression=true]:not([body.type='ArrowFunctionExpression'])",
  message: "The result of an effect is called on cleanup; use braces.",
};

// While an input method composes, keys belong to the input method.
const KEYS = {
  selector: "MemberExpression[object.name='event'][property.name='key']",
  message: "Use keyOf (ui/keys.ts): it ignores the keys of an input method.",
};

// A refresh may fail, such as after the session has ended: the page keeps its content and the input.
const REFRESH = [
  "IfStatement > MemberExpression.test[property.name='isError']",
  "ConditionalExpression:not([alternate.type='Literal']) > MemberExpression.test[property.name='isError']",
  "CallExpression[callee.property.name='find'] > ArrowFunctionExpression > MemberExpression.body[property.name='isError']",
  "LogicalExpression[operator='??'][right.property.name='error'] > MemberExpression.left[property.name='error']",
].map((selector) => ({
  selector,
  message: "A failed refresh would remove the page and its input: use isLoadingError.",
}));

const WAIT_FOR = {
  selector: "CallExpression[callee.object.name='vi'][callee.property.name='waitFor']",
  message:
    "It gives up after a second, which measures the machine's speed; use soon (test/soon.ts).",
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
      "no-restricted-syntax": [
        "error",
        MARKUP,
        SET_DATA,
        COUNTS,
        EFFECT_RESULT,
        KEYS,
        WAIT_FOR,
        ...REFRESH,
      ],
      // A list that opens moves the focus to its search field.
      "jsx-a11y/no-autofocus": "off",
      // A scrollable log or code block has to be focusable.
      "jsx-a11y/no-noninteractive-tabindex": "off",
      "jsx-a11y/label-has-associated-control": ["error", { assert: "either", depth: 3 }],
    },
  },
  {
    files: ["src/api/optimistic.ts"],
    rules: { "no-restricted-syntax": ["error", MARKUP, COUNTS, EFFECT_RESULT, KEYS] },
  },
  {
    files: ["src/lib/words.ts"],
    rules: { "no-restricted-syntax": ["error", MARKUP, SET_DATA, EFFECT_RESULT, KEYS] },
  },
  {
    files: ["src/test/soon.ts"],
    rules: { "no-restricted-syntax": ["error", MARKUP, SET_DATA, COUNTS, EFFECT_RESULT, KEYS] },
  },
  // Outside fields there is no input method.
  {
    files: ["src/ui/keys.ts", "src/app/frame/shortcuts.ts"],
    rules: { "no-restricted-syntax": ["error", MARKUP, SET_DATA, COUNTS, EFFECT_RESULT] },
  },
);
