// Runs before the first paint, so that a dark page never flashes white. Its value is written by features/appearance/theme.ts and features/appearance/fonts.ts.
(function () {
  var theme = null;
  try {
    if (localStorage.getItem("coder-fonts") === "loaded") document.documentElement.dataset.fonts = "loaded";
    theme = localStorage.getItem("coder-theme");
  } catch (error) {
    // storage is disabled: use the system preference
  }
  if (!theme || theme === "auto") {
    var dark = matchMedia("(prefers-color-scheme: dark)").matches;
    theme = matchMedia("(prefers-contrast: more)").matches ? (dark ? "dark-contrast" : "light-contrast") : dark ? "dark" : "light";
  }
  document.documentElement.dataset.theme = theme;
})();
