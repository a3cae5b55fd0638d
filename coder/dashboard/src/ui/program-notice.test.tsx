import { screen, waitFor } from "@testing-library/react";
import { expect, it } from "vitest";

import { Refusal, visit } from "../test/world";
import { ProgramNotice } from "./ProgramNotice";

const open = (answers: object) => visit([{ path: "/", element: <ProgramNotice file="coder-linux-amd64" /> }], "/", { ...answers });

it("warns of a program the server does not have, in the server's words", async () => {
  open({ "GET /bin/coder-linux-amd64": new Refusal(404, "There is no coder-linux-amd64 on this server.") });
  expect(await screen.findByText("There is no coder-linux-amd64 on this server.")).toBeVisible();
});

it("says nothing of one that is there, and does not load it", async () => {
  const page = open({ "HEAD /bin/coder-linux-amd64": {} });
  await waitFor(() => expect(page.asked).toEqual(["HEAD /bin/coder-linux-amd64"]));
  expect(screen.queryByRole("status")).toBeNull();
});
