import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { visit } from "../../test/world";
import { JobReasons } from "./JobReasons";

it("keeps the second of two quick clicks", async () => {
  let parked = false;
  const answers: (() => void)[] = [];
  const page = visit(
    [{ path: "/", element: <JobReasons organization="o" job="j" home="/organizations/acme" /> }],
    "/",
    {
      "GET /api/v2/organizations/o/provisionerjobs/j/why": () => ({
        verdict: "nobody",
        summary: "",
        daemons: [],
        remedy: null,
        no_expected_start: "",
        parked,
      }),
      "PUT /api/v2/organizations/o/provisionerjobs/j/parked": (body: { parked: boolean }) =>
        new Promise((done) =>
          answers.push(() => {
            parked = body.parked;
            done({});
          }),
        ),
    },
  );
  const toggle = await screen.findByRole("switch", { name: "Wait without a time limit" });
  await userEvent.click(toggle);
  expect(toggle).toBeChecked();
  await userEvent.click(toggle);
  for (const turn of [0, 1]) {
    await waitFor(() => expect(answers).toHaveLength(turn + 1));
    answers[turn]?.();
  }
  await waitFor(() => expect(page.fetching()).toBe(0));
  expect(page.sent.map((request) => request.body)).toEqual([{ parked: true }, { parked: false }]);
  expect(toggle).not.toBeChecked();
});
