import { render } from "@testing-library/react";
import { expect, it } from "vitest";

import { WithCode } from "./WithCode";

it("shows code between backticks", () => {
  const { container } = render(<WithCode text="Put it into the `bin` folder of `--cache-dir`." />);
  expect(container.innerHTML).toBe(
    "Put it into the <code>bin</code> folder of <code>--cache-dir</code>.",
  );
});
