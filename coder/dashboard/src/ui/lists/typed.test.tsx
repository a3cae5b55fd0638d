import { act, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { useTyped } from "./typed";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const settle = () =>
  act(() => {
    vi.advanceTimersByTime(1000);
  });

/** A field, the address it updates, and the address setting the field. */
function open(initial: string) {
  const updates: string[] = [];
  const { result, rerender } = renderHook(
    ({ now }) =>
      useTyped(now, (next) => {
        updates.push(next);
      }),
    { initialProps: { now: initial } },
  );
  return {
    told: updates,
    text: () => result.current.text,
    type: (text: string) =>
      act(() => {
        result.current.setText(text);
      }),
    send: (text: string) =>
      act(() => {
        result.current.send(text);
      }),
    choose: (text: string) =>
      act(() => {
        result.current.choose(text);
      }),
    comes: (now: string) => rerender({ now }),
  };
}

it("updates once after typing settles", () => {
  const field = open("");
  field.type("a");
  field.type("ab");
  expect(field.told).toEqual([]);
  settle();
  field.comes("");
  settle();
  expect(field.told).toEqual(["ab"]);
  field.comes("ab");
  settle();
  expect([field.text(), field.told]).toEqual(["ab", ["ab"]]);
});

it("keeps input despite late echoes", () => {
  const field = open("");
  for (const text of ["a", "ab", "abc"]) {
    field.type(text);
    settle();
  }
  field.type("abcd");
  for (const late of ["a", "abc"]) {
    field.comes(late);
    expect(field.text()).toBe("abcd");
  }
  settle();
  expect(field.told).toEqual(["a", "ab", "abc", "abcd"]);
});

it("shows outside changes over pending input", () => {
  const field = open("a");
  field.type("ab");
  field.comes("b");
  settle();
  expect([field.text(), field.told]).toEqual(["b", []]);
  field.comes("a"); // the browser's back button
  expect(field.text()).toBe("a");
});

it("shows a restored value that was sent before", () => {
  const field = open("");
  for (const text of ["a", "ab"]) {
    field.type(text);
    settle();
  }
  field.comes("ab"); // "a" was superseded
  field.comes("a");
  expect(field.text()).toBe("a");
  field.comes("ab");
  expect(field.text()).toBe("ab");
});

it("shows a value sent and reverted before its echo", () => {
  const field = open("");
  field.send("a");
  field.send("");
  field.comes("");
  field.comes("a");
  expect(field.text()).toBe("a");
});

it("updates at once on Enter, once", () => {
  const field = open("");
  field.type("a");
  field.send("a");
  settle();
  expect(field.told).toEqual(["a"]);
});

it("replaces input by a chosen value, even the current one", () => {
  for (const chosen of ["", "a"]) {
    const field = open("");
    field.type("half");
    field.choose(chosen);
    field.comes(chosen);
    settle();
    expect([field.text(), field.told]).toEqual([chosen, [chosen]]);
  }
});
