// The announcement banners set by administrators. The background colour is theirs; the text is
// black or white, whichever has more contrast.
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";

import { appearance } from "../../api/queries/session";

const Markdown = lazy(() => import("../../ui/text/Markdown"));
const DEFAULT = "#004852";

export function Announcements() {
  const banners = useQuery(appearance).data?.announcement_banners ?? [];
  return banners
    .filter((banner) => banner.enabled && banner.message)
    .map((banner, index) => {
      const colour = /^#[0-9a-f]{6}$/i.test(banner.background_color ?? "")
        ? (banner.background_color as string)
        : DEFAULT;
      return (
        <div
          key={index}
          role="note"
          aria-label="Announcement"
          className="px-4 py-1.5 text-center text-sm [overflow-wrap:anywhere] [&_a]:underline"
          style={{ background: colour, color: readableOn(colour) }}
        >
          <Suspense fallback={banner.message}>
            <Markdown text={banner.message ?? ""} inline />
          </Suspense>
        </div>
      );
    });
}

/** Black or white, by the relative luminance of WCAG 2.2. */
export function readableOn(colour: string): string {
  const part = (at: number) => {
    const value = parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5) > 0.179 ? "#000000" : "#ffffff";
}
