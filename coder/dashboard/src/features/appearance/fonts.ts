// The dashboard's own fonts. A page starts with the system's: 90 kB of fonts would delay the first
// page, and a late change of the font would move its texts. `public/theme.js` applies them before the
// first paint once the browser has them in its cache.

const STORED = "coder-fonts";
const FONTS = ['400 1rem "Inter Variable"', '400 1rem "JetBrains Mono Variable"'];

let loaded = false;

/** Load the fonts for the next page. Without storage, they apply to pages of this document only. */
export async function loadFonts(): Promise<void> {
  const faces = await Promise.all(FONTS.map((font) => document.fonts.load(font)));
  if (faces.some((face) => face.length === 0)) return;
  loaded = true;
  try {
    localStorage.setItem(STORED, "loaded");
  } catch {
    // storage is disabled: the next document loads them again
  }
}

/** Apply the loaded fonts, when the page changes anyway. */
export function applyFonts(): void {
  if (loaded) document.documentElement.dataset["fonts"] = "loaded";
}
