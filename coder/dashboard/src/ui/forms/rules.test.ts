import { expect, it } from "vitest";

import { validationText } from "./rules";

const refused = { status: 400, message: "No." };

it.each([
  [
    "insecure password, try using numbers or using a longer password",
    "Insecure password, try using numbers or using a longer password.",
  ],
  ["password must be no more than 64 characters", "Password must be no more than 64 characters."],
  ["Choose another name", "Choose another name"],
  ["owner:me is no such key", "owner:me is no such key"],
  ["ttl_ms must be positive", "ttl_ms must be positive"],
  ["", ""],
])("explains %j as %j", (detail, sentence) => {
  expect(validationText(detail, refused)).toBe(sentence);
});
