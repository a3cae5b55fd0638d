import { EditorView } from "@codemirror/view";
import { render } from "@testing-library/react";
import { beforeAll, expect, it } from "vitest";

import { CodeEditor, type Mark } from "./CodeEditor";

const TEXT = 'resource "a" "b" {\n  count = x\n}\n';
const MARKS: readonly Mark[] = [
  { line: 2, severity: "error", message: "Unknown name" },
  { line: 1, severity: "warning", message: "Old" },
  { line: 90, severity: "error", message: "of a longer text" },
];

// jsdom measures no text.
beforeAll(() => {
  Range.prototype.getClientRects = () => [] as unknown as DOMRectList;
});

function open(props: Partial<Parameters<typeof CodeEditor>[0]>) {
  const shown = (more: typeof props) => (
    <CodeEditor path="main.tf" text={TEXT} label="main.tf" onChange={() => undefined} {...more} />
  );
  const { container, rerender } = render(shown(props));
  const view = EditorView.findFromDOM(
    container.querySelector<HTMLElement>(".cm-editor") as HTMLElement,
  );
  if (!view) throw new Error("there is no editor");
  return {
    view,
    again: (more: typeof props) => rerender(shown(more)),
    marked: (kind: string) =>
      [...container.querySelectorAll(`.cm-lintRange-${kind}`)]
        .map((element) => element.textContent)
        .join(""),
  };
}

it("marks lines, moves the marks, and removes them", () => {
  const { view, marked, again: update } = open({ marks: MARKS });
  expect([marked("error"), marked("warning")]).toEqual(["count = x", 'resource "a" "b" {']);
  view.dispatch({ changes: { from: 0, insert: "# new\n" } });
  expect(marked("error")).toBe("count = x");
  update({ marks: [] });
  expect([marked("error"), marked("warning")]).toEqual(["", ""]);
});

it("scrolls to a line, repeatedly, and clamps to the last", () => {
  const { view, again: update } = open({ target: { line: 2 } });
  const line = () => view.state.doc.lineAt(view.state.selection.main.head).number;
  expect([line(), view.hasFocus]).toEqual([2, true]);
  view.dispatch({ selection: { anchor: 0 } });
  update({ target: { line: 2 } });
  expect(line()).toBe(2);
  update({ target: { line: 99 } });
  expect(line()).toBe(4);
});

it("marks nothing in read-only text", () => {
  expect(open({ onChange: undefined as never, marks: MARKS }).marked("error")).toBe("");
});

it("keeps Tab for the text, and lets go of it after Escape", () => {
  const { view } = open({});
  const press = (key: string, keyCode: number) => {
    const event = new KeyboardEvent("keydown", { key, keyCode, bubbles: true, cancelable: true });
    view.contentDOM.dispatchEvent(event);
    return event.defaultPrevented;
  };
  view.focus();
  expect(press("Tab", 9)).toBe(true);
  press("Escape", 27);
  expect(press("Tab", 9)).toBe(false);
  expect(view.contentDOM).toHaveAccessibleDescription("Esc, then Tab leaves the editor");
});
