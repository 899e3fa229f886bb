// Before the first paint, so that a chosen theme does not flash the other one. The page's policy allows no inline script.
try {
  const { theme } = JSON.parse(localStorage.getItem("rullama-settings") ?? "{}");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Settings that cannot be read are replaced by defaults when the app starts.
}
