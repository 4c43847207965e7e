// Paper has no drawers: open those with tables before printing, and close them again.
const drawers = () => document.querySelectorAll("details.more-tables:not([open])");
addEventListener("beforeprint", () => drawers().forEach((d) => { d.open = true; d.dataset.opened = ""; }));
addEventListener("afterprint", () =>
  document.querySelectorAll("details[data-opened]").forEach((d) => { d.open = false; delete d.dataset.opened; }));
// Copy the citations; where the browser refuses, select them, so that the reader can.
const copy = document.getElementById("copy"), written = document.getElementById("bibtex");
if (copy) {
  copy.hidden = false;
  copy.addEventListener("click", async () => {
    getSelection().selectAllChildren(written);
    try { await navigator.clipboard.writeText(written.textContent); copy.textContent = "Copied"; } catch { copy.textContent = "Selected: press Ctrl+C"; }
  });
}
