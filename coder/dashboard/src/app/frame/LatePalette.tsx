// The palette, whose code loads when it first opens. Until then its input is there already: what the user types
// meanwhile is kept.
import { lazy, Suspense, useCallback, useEffect, useState } from "react";

import { useFocusReturnOnUnmount } from "../../ui/focus/focus-return";
import { keyOf } from "../../ui/keys";
import { INPUT, LABEL, OVERLAY, PANEL, PLACEHOLDER } from "./palette-look";

const CommandPalette = lazy(async () => ({
  default: (await import("./CommandPalette")).CommandPalette,
}));

export function LatePalette({
  origin,
  onClose,
  onHelp,
}: {
  /** The element that had the focus before. */
  origin: HTMLElement | null;
  onClose: () => void;
  /** Opens the list of shortcuts. */
  onHelp: () => void;
}) {
  const onLeave = useFocusReturnOnUnmount(origin);
  const [typed, setTyped] = useState<string>(); // undefined if the code was there at once
  const early = useCallback(() => setTyped((text) => text ?? ""), []);
  const placeholder = (
    <Placeholder text={typed ?? ""} onShown={early} onText={setTyped} onClose={onClose} />
  );
  return (
    <Suspense fallback={placeholder}>
      <CommandPalette
        {...(typed === undefined ? {} : { typed })}
        onLeave={onLeave}
        onClose={onClose}
        onHelp={onHelp}
      />
    </Suspense>
  );
}

function Placeholder({
  text,
  onShown,
  onText,
  onClose,
}: {
  text: string;
  onShown: () => void;
  onText: (text: string) => void;
  onClose: () => void;
}) {
  useEffect(onShown, [onShown]);
  return (
    <>
      <div className={OVERLAY} onPointerDown={onClose} />
      <div role="dialog" aria-modal="true" aria-label={LABEL} className={PANEL}>
        <input
          autoFocus
          aria-label={LABEL}
          autoComplete="off"
          spellCheck={false}
          value={text}
          placeholder={PLACEHOLDER}
          className={INPUT}
          onChange={(event) => onText(event.target.value)}
          onKeyDown={(event) => {
            if (keyOf(event) === "Escape") onClose();
            else if (keyOf(event) === "Tab") event.preventDefault();
          }}
        />
        <p role="status" className="px-3 py-6 text-center text-muted">
          Loading…
        </p>
      </div>
    </>
  );
}
