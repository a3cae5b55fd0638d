import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { visit } from "../../test/world";
import { AppearancePage } from "./AppearancePage";

const banner = (message: string) => ({ enabled: true, message, background_color: "#004852" });

it("saves two quick switches of two banners", async () => {
  let stored = {
    application_name: "",
    logo_url: "",
    docs_url: "",
    support_links: [],
    service_banner: banner(""),
    announcement_banners: [banner("one"), banner("two")],
  };
  const answers: (() => void)[] = [];
  visit([{ path: "/", element: <AppearancePage /> }], "/", {
    "GET /api/v2/appearance": () => stored,
    "PUT /api/v2/appearance": (body: typeof stored) =>
      new Promise((done) => answers.push(() => done((stored = { ...stored, ...body })))),
  });
  await userEvent.click(await screen.findByRole("switch", { name: "Show the banner one" }));
  await userEvent.click(screen.getByRole("switch", { name: "Show the banner two" }));
  for (const turn of [0, 1]) {
    await waitFor(() => expect(answers).toHaveLength(turn + 1));
    answers[turn]?.();
  }
  await waitFor(() =>
    expect(stored.announcement_banners.map((entry) => entry.enabled)).toEqual([false, false]),
  );
});

it("keeps a second quick click and a changed text", async () => {
  let stored = {
    application_name: "",
    logo_url: "",
    docs_url: "",
    support_links: [],
    service_banner: banner(""),
    announcement_banners: [banner("one")],
  };
  const answers: (() => void)[] = [];
  visit([{ path: "/", element: <AppearancePage /> }], "/", {
    "GET /api/v2/appearance": () => stored,
    "PUT /api/v2/appearance": (body: typeof stored) =>
      new Promise((done) => answers.push(() => done((stored = { ...stored, ...body })))),
  });
  const shown = await screen.findByRole("switch", { name: "Show the banner one" });
  stored = { ...stored, announcement_banners: [banner("two")] };
  await userEvent.click(shown);
  expect(shown).not.toBeChecked();
  await userEvent.click(shown);
  for (const turn of [0, 1]) {
    await waitFor(() => expect(answers).toHaveLength(turn + 1));
    answers[turn]?.();
  }
  expect(await screen.findByRole("switch", { name: "Show the banner two" })).toBeChecked();
  expect(stored.announcement_banners).toEqual([banner("two")]);
});
