// Ticks are drawn inside their box (styles/forms.css), and only a box that lays out its content
// shows them.
import { expect, it } from "vitest";

const sources = import.meta.glob<string>(["../../**/*.tsx", "!../../**/*.test.tsx"], {
  query: "?raw",
  import: "default",
  eager: true,
});
const BOX = /<input[^<]*?type="(?:checkbox|radio)"[^<]*/g;
const LAYS_OUT_OTHERWISE =
  /className="[^"]*(?<![\w-])(?:block|inline|inline-block|flex|inline-flex|contents)(?![\w-])[^"]*"/;

const boxes = Object.entries(sources).flatMap(([file, text]) =>
  [...text.matchAll(BOX)].map(([box]) => [file, box] as const),
);

it("finds them", () => expect(boxes.length).toBeGreaterThan(4));

it.each(boxes)("%s shows its tick: %s", (_, box) => expect(box).not.toMatch(LAYS_OUT_OTHERWISE));
