import { render } from "@testing-library/react";
import { expect, it } from "vitest";

import { LastUsed } from "./LastUsed";

const before = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();

it.each([
  ["0001-01-01T00:00:00Z", "never"],
  [before(1), "within the last hour"],
  [before(59), "within the last hour"],
  [before(65), "1 hour ago"],
])("shows %s as %j", (at, text) => {
  expect(render(<LastUsed at={at} />).container).toHaveTextContent(new RegExp(`^${text}$`));
});
