import { expect, it } from "vitest";

import { CUSTOM, daysOf, STOP_CHOICES, stopChoice, WEEK, withDay } from "./days";

it("every set of days round-trips through its choice", () => {
  for (let bits = 0; bits < 1 << WEEK.length; bits += 1) {
    const days = WEEK.filter((_, index) => bits & (1 << index));
    const choice = stopChoice([...days].reverse());
    expect(STOP_CHOICES.map(([value]) => value)).toContain(choice);
    expect(daysOf(choice, days)).toEqual(days);
  }
});

it("recognizes the usual sets", () => {
  expect(
    [[], WEEK, ["saturday"], ["sunday"], ["monday"], ["monday", "wednesday"]].map(stopChoice),
  ).toEqual(["off", "daily", "saturday", "sunday", CUSTOM, CUSTOM]);
});

it("keeps days in the order of the week", () => {
  expect(withDay(withDay(["friday"], "monday", true), "friday", false)).toEqual(["monday"]);
  expect(withDay(["friday"], "monday", true)).toEqual(["monday", "friday"]);
});
