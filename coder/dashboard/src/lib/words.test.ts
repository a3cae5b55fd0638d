import { expect, it } from "vitest";

import { countedAtStart, counted, plural, usedBy } from "./words";

it.each([
  [0, "no members", "No members", "no active developers"],
  [1, "1 member", "1 member", "1 developer"],
  [2, "2 members", "2 members", "2 developers"],
  [
    1200,
    `${(1200).toLocaleString()} members`,
    `${(1200).toLocaleString()} members`,
    `${(1200).toLocaleString()} developers`,
  ],
])("%i", (count, inside, first, developers) => {
  expect([counted(count, "member"), countedAtStart(count, "member"), usedBy(count)]).toEqual([
    inside,
    first,
    developers,
  ]);
});

it("accepts an irregular plural", () => {
  expect([
    counted(1, "person", "people"),
    counted(3, "person", "people"),
    plural(1, "is", "are"),
    plural(0, "is", "are"),
  ]).toEqual(["1 person", "3 people", "is", "are"]);
});
