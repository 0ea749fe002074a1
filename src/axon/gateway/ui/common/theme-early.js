// A classic script, so that a page is never painted in the other theme first.
(() => {
  try {
    const theme = localStorage.getItem("axon.theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // The browser keeps nothing for this page; the system's theme stays.
  }
})();
