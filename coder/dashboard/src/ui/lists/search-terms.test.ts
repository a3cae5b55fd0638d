import { describe, expect, it } from "vitest";

import { termOf, withTerm } from "./search-terms";

describe("search terms", () => {
  it.each([
    ["owner:me status:running", "status", "running"],
    ['template:"two words"', "template", "two words"],
    ["dev", "status", null],
    ["", "status", null],
  ] as const)("%j has %s %j", (filter, key, value) => {
    expect(termOf(filter, key)).toBe(value);
  });

  it.each([
    ["owner:me", "status", "failed", "owner:me status:failed"],
    ["status:running owner:me", "status", "failed", "owner:me status:failed"],
    ["owner:me status:running", "status", null, "owner:me"],
    ["", "template", "two words", 'template:"two words"'],
    ["dev", "name", 'a"b c', 'dev name:"ab c"'],
  ] as const)("%j with %s:%s is %j", (filter, key, value, result) => {
    expect(withTerm(filter, key, value)).toBe(result);
  });
});
