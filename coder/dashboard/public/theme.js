// Runs before anything is painted, so that a dark page never flashes white. What it may read is written by features/appearance/theme.ts.
(function () {
  var theme = null;
  try {
    theme = localStorage.getItem("coder-theme");
  } catch (error) {
    // storage is switched off: the system decides
  }
  if (!theme || theme === "auto") {
    var dark = matchMedia("(prefers-color-scheme: dark)").matches;
    theme = matchMedia("(prefers-contrast: more)").matches ? (dark ? "dark-contrast" : "light-contrast") : dark ? "dark" : "light";
  }
  document.documentElement.dataset.theme = theme;
})();
