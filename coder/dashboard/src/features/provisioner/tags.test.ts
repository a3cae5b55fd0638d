import { expect, it } from "vitest";

import { readTags, tagEntries } from "./tags";

it.each([
  ["", {}],
  ["os=linux", { os: "linux" }],
  ["os=linux, gpu=yes", { os: "linux", gpu: "yes" }],
  ["a=b=c", { a: "b=c" }],
  ["empty=", { empty: "" }],
  ["alone", null],
  ["=x", null],
])("parses %j as %j", (text, tags) => {
  expect(readTags(text)).toEqual(tags);
});

it.each([
  [null, 0],
  [{ owner: "", scope: "organization" }, 0],
  [{ owner: "ana", scope: "user" }, 2],
  [{ os: "linux", owner: "" }, 1],
])("of %j shows %d", (tags, count) => {
  expect(tagEntries(tags)).toHaveLength(count);
});
