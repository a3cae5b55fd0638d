import { render, screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { RunHint } from "./RunHint";

const command = (origin: string) =>
  `curl -fsSL "${origin}/api/v2/init-script/linux/amd64" | CODER_AGENT_TOKEN="t" sh`;

it.each([
  ["http://127.0.0.1:3000", "127.0.0.1"],
  ["http://LOCALHOST:3000", "localhost"],
  ["https://coder.localhost", "coder.localhost"],
  ["http://[::1]:3000", "[::1]"],
  ["http://127.9.8.7", "127.9.8.7"],
])("warns that no other machine can reach %s", (origin, host) => {
  render(<RunHint command={command(origin)} />);
  expect(screen.getByRole("status")).toHaveTextContent(
    `Only the server’s own machine can reach ${host}`,
  );
});

it.each([
  "https://coder.example.com",
  "http://10.0.0.5:3000",
  "http://[fd7a::1]:3000",
  "https://localhost.example.com",
  "http://127.example.com",
])("does not warn about %s", (origin) => {
  render(<RunHint command={command(origin)} />);
  expect(screen.queryByRole("status")).toBeNull();
  expect(screen.getByText(/while the command runs/)).toBeVisible();
});

it("does not warn before the command is known", () => {
  render(<RunHint command={undefined} />);
  expect(screen.queryByRole("status")).toBeNull();
});
