// Light or dark by hand; without this script the page follows the reader's system.
const root = document.documentElement, button = document.getElementById("scheme");
const system = matchMedia("(prefers-color-scheme: dark)");
const dark = () => (root.dataset.scheme || (system.matches ? "dark" : "light")) === "dark";
const say = () => { button.textContent = dark() ? "Light" : "Dark"; };
button.addEventListener("click", () => { root.dataset.scheme = dark() ? "light" : "dark"; say(); });
system.addEventListener("change", say);
button.hidden = false;
say();
