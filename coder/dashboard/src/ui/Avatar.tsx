// Avatars of users and objects. An image that does not load is replaced by initials in a colour
// derived from the name.
import { useState } from "react";

import { cx } from "./cx";

const SIZES = {
  xs: "size-5 text-[0.6rem]",
  sm: "size-6 text-xs",
  md: "size-8 text-sm",
  lg: "size-10 text-base",
  xl: "size-14 text-xl",
} as const;
type Size = keyof typeof SIZES;

interface AvatarProps {
  name: string;
  src?: string | null | undefined;
  size?: Size;
  /** Users are round, objects are square. */
  square?: boolean;
}

export function Avatar({ name, src, size = "md", square = false }: AvatarProps) {
  const [broken, setBroken] = useState("");
  const shape = cx(
    "inline-grid shrink-0 place-items-center overflow-hidden font-semibold",
    SIZES[size],
    square ? "rounded-md" : "rounded-full",
  );
  const address = safeImage(src);
  if (address && broken !== address) {
    return (
      <span className={cx(shape, square && "p-0.5")} aria-hidden="true">
        <img
          src={address}
          alt=""
          className={cx("size-full", square ? "object-contain" : "rounded-full object-cover")}
          loading="lazy"
          referrerPolicy="no-referrer"
          onError={() => setBroken(address)}
        />
      </span>
    );
  }
  const hue = hueOf(name);
  return (
    <span
      className={shape}
      aria-hidden="true"
      style={{ background: `hsl(${hue} 45% 38%)`, color: "#fff" }}
    >
      {(name.trim()[0] ?? "?").toUpperCase()}
    </span>
  );
}

// Images only: template authors choose an icon's address. Emoji codes of the site are paths of
// their own.
export function safeImage(src: string | null | undefined): string | null {
  if (!src) return null;
  try {
    const url = new URL(src, window.location.origin);
    return url.protocol === "https:" || url.protocol === "http:" || /^data:image\//i.test(src)
      ? src
      : null;
  } catch {
    return null;
  }
}

function hueOf(name: string): number {
  let sum = 0;
  for (const letter of name) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 360;
  return sum;
}
