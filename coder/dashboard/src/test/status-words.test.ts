// Colour is never the only sign of a state: every tone comes with text in or next to it. Checked in
// the sources.
import ts from "typescript";
import { expect, it } from "vitest";

import * as badge from "../ui/Badge";
import { AGENT_STATUS, STATUS } from "../features/workspace/status";
import { JOB_WORDS } from "../features/provisioner/job-states";
import { WORDS } from "../pages/health/sections";

const sources = import.meta.glob<string>(
  ["../**/*.tsx", "!../pages/dev/**", "!../**/*.test.tsx", "!../test/**"],
  { query: "?raw", import: "default", eager: true },
);
const TONE = /\b(?:text|bg|border|fill|stroke)-(?:good|warn|bad|busy|idle|solid-bad)\b/;

type Element = ts.JsxElement | ts.JsxSelfClosingElement;
const opening = (element: Element) => (ts.isJsxElement(element) ? element.openingElement : element);
const attribute = (element: Element, name: string) =>
  opening(element).attributes.properties.find(
    (item) => ts.isJsxAttribute(item) && item.name.getText() === name,
  );

/** Text, a value, or a labelled element. Content hidden from screen readers does not count. */
function hasText(part: ts.JsxChild): boolean {
  if (ts.isJsxText(part)) return /[\p{L}\p{N}]/u.test(part.text);
  if (ts.isJsxExpression(part)) return part.expression !== undefined;
  if (ts.isJsxFragment(part)) return part.children.some(hasText);
  if (attribute(part, "aria-label") || attribute(part, "label")) return true;
  return !attribute(part, "aria-hidden") && ts.isJsxElement(part) && part.children.some(hasText);
}

function* elements(node: ts.Node): Generator<Element> {
  if (ts.isJsxElement(node) || ts.isJsxSelfClosingElement(node)) yield node;
  for (const child of node.getChildren()) yield* elements(child);
}

/**
 * The siblings of an element: of the whole expression for a conditional one, of the drawing for a
 * part of it.
 */
function siblingsOf(element: Element): ts.JsxChild[] {
  let outer: ts.Node = element;
  while (
    outer.parent &&
    !ts.isJsxElement(outer.parent) &&
    !ts.isJsxFragment(outer.parent) &&
    !ts.isFunctionLike(outer.parent)
  )
    outer = outer.parent;
  const around = outer.parent;
  if (!around || !(ts.isJsxElement(around) || ts.isJsxFragment(around))) return [];
  if (ts.isJsxElement(around) && attribute(around, "aria-hidden")) return siblingsOf(around);
  return around.children.filter((other) => other !== outer);
}

/** Toned elements without text: [line, tag]. */
function unlabelled(file: string, text: string): string[] {
  const tree = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX);
  return [...elements(tree)]
    .filter((element) => {
      const tag = opening(element).tagName.getText();
      if (tag === "StatusText" || tag === "Tag") return !hasText(element);
      if (!TONE.test(attribute(element, "className")?.getText() ?? "")) return false;
      return (
        !hasText(element) &&
        !(ts.isJsxElement(element) && element.children.some(hasText)) &&
        !siblingsOf(element).some(hasText)
      );
    })
    .map(
      (element) =>
        `${file}:${tree.getLineAndCharacterOfPosition(element.getStart()).line + 1} <${opening(element).tagName.getText()}>`,
    );
}

it.each([
  ['<p><span className="bg-bad" /></p>', 1],
  ["<p><StatusText tone={t} /></p>", 1],
  ['<p><i className="text-good" aria-hidden="true" /></p>', 1],
  ['<p><i className="text-good" aria-hidden="true" />Saved</p>', 0],
  ["<StatusText tone={t}>{word}</StatusText>", 0],
  ['<i className="text-warn" role="img" aria-label="Warning" />', 0],
  ['<p>{a ? <i className="text-good" /> : <i className="text-bad" />}{word}</p>', 0],
  ['<p>{a ? <i className="text-good" /> : <i className="text-bad" />}</p>', 2],
])("%s has %d places without text", (markup, places) => {
  expect(unlabelled("a.tsx", `const a = ${markup};`)).toHaveLength(places);
});

it.each(Object.entries(sources))("%s labels its colours", (file, text) => {
  expect(unlabelled(file, text)).toEqual([]);
});

it("a dot is never drawn without its label", () => {
  expect(Object.keys(badge).sort()).toEqual(["Count", "StatusText", "Tag"]);
});

it.each([
  ["workspaces", Object.values(STATUS).map(([word]) => word)],
  ["agents", Object.values(AGENT_STATUS).map(([word]) => word)],
  ["jobs", Object.values(JOB_WORDS)],
  ["health", Object.values(WORDS)],
])("states of %s have unique labels", (_, words) => {
  expect(words.every((word) => /\p{L}/u.test(word))).toBe(true);
  expect(new Set(words).size).toBe(words.length);
});
