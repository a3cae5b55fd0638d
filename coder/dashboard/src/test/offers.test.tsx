// Controls of a page for users with and without the permission: the control, or a sentence in its
// place.
import { act, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { AuthorizationCheck } from "../api/types";
import { SignedIn } from "./world";
import { visit } from "./world";
import { OFFERS, type Offer } from "./offers-table";
import { ANSWERS } from "./offers-answers";

/** Answers every permission check, and records which were denied. */
function allowing(denied: string | null) {
  const [kind, action] = (denied ?? " . ").split(".");
  const refused: string[] = [];
  const answer = ({ checks }: { checks: Record<string, AuthorizationCheck> }) =>
    Object.fromEntries(
      Object.entries(checks).map(([name, check]) => {
        const no =
          check.object.resource_type === kind && (action === "*" || check.action === action);
        if (no) refused.push(name);
        return [name, !no];
      }),
    );
  return { answer, refused };
}

async function open({ page: routes, at = "/", open: trigger }: Offer, denied: string | null) {
  const { answer, refused } = allowing(denied);
  const page = visit([{ element: <SignedIn bare />, children: routes }], at, {
    ...ANSWERS,
    "POST /api/v2/authcheck": answer,
  });
  if (trigger) await userEvent.click(await screen.findByRole("button", { name: trigger }));
  await waitFor(() => expect(page.requests).toContain("POST /api/v2/authcheck"));
  return { ...page, refused };
}

/**
 * Waits until the denial has arrived and no request is pending: before that, a page offers nothing
 * to any user.
 */
async function settled({ fetching, refused }: Awaited<ReturnType<typeof open>>) {
  await waitFor(() => {
    expect(refused).not.toEqual([]);
    expect(fetching()).toBe(0);
  });
  await act(async () => {
    await new Promise((done) => setTimeout(done));
  }); // the last answer is displayed
  await waitFor(() => expect(fetching()).toBe(0)); // and so are the requests it caused
}

const rows = Object.entries(OFFERS).map(([what, offer]) => ({ what, ...offer }));

it.each(rows)("$what: is offered with $right", async (offer) => {
  await open(offer, null);
  expect(await screen.findByRole(offer.shown[0], { name: offer.shown[1] })).toBeVisible();
  if (offer.sentence) expect(screen.queryByText(offer.sentence)).toBeNull();
});

it.each(rows)("$what: is not offered without $right", async (offer) => {
  await settled(await open(offer, offer.right));
  if (offer.sentence) expect((await screen.findAllByText(offer.sentence))[0]).toBeVisible();
  expect(screen.queryByRole(offer.shown[0], { name: offer.shown[1] })).toBeNull();
});
