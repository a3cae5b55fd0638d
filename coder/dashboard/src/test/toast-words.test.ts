// Scripts wait for "… created successfully." after a change (docs/guides/dashboard-names.md).
import { expect, it } from "vitest";

const sources = import.meta.glob<string>(
  ["../**/*.{ts,tsx}", "!../**/*.test.{ts,tsx}", "!../test/**"],
  { query: "?raw", import: "default", eager: true },
);
const TOAST = /toast\.done\(\s*[`"]([^`"]*)/g;
/** A finished change; "is being deleted" is a begun one. */
const CHANGED =
  /(?<!being )\b(?:created|updated|deleted|removed|added|revoked|regenerated|promoted|published)\./;
/** The original's own texts. */
const ITS_OWN = /sync settings updated\.$/;

it("ends each change with the word that scripts wait for", () => {
  const texts = Object.values(sources).flatMap((source) =>
    [...source.matchAll(TOAST)].map(([, text = ""]) => text),
  );
  expect(texts.length).toBeGreaterThan(40);
  expect(texts.filter((text) => CHANGED.test(text) && !ITS_OWN.test(text))).toEqual([]);
});
