// One item at a time. Answers are kept in this browser under the annotator's name, and saved as a file.
{
  const at = id => document.getElementById(id);
  const key = document.querySelector("main").dataset.key;
  const items = [...document.querySelectorAll("article")];
  const names = items.map(item => item.dataset.item);
  const place = `exegete-annotate-${key}`;
  const QUESTION = document.title;
  let annotator = "", answers = {}, now = 0, kept = true, unsaved = false;

  const read = name => { try { return localStorage.getItem(name); } catch { kept = false; return null; } };
  const write = (name, value) => { try { localStorage.setItem(name, value); } catch { kept = false; } };
  const stored = name => { try { return JSON.parse(read(`${place}/${name}`)) || {}; } catch { return {}; } };
  const count = () => names.filter(name => name in answers).length;
  const tell = (sentence, wrong = false) => {
    at("status").textContent = sentence;
    at("status").classList.toggle("wrong", wrong);
  };

  const show = () => {
    const begun = annotator !== "", done = count();
    at("start").hidden = begun;
    at("controls").hidden = !begun;
    items.forEach((item, i) => { item.hidden = !begun || i !== now; });
    at("place").textContent = begun ? `${now + 1} of ${items.length}` : `${items.length} items`;
    at("answered").textContent = begun ? ` · ${done} answered` : "";
    at("bar").value = done;
    for (const word of ["yes", "no"]) at(word).setAttribute("aria-pressed", String(answers[names[now]] === word));
    at("back").disabled = now === 0;
    at("next").disabled = now === items.length - 1;
    at("open").disabled = done === items.length;
    document.title = begun ? `${now + 1} of ${items.length} · ${QUESTION}` : QUESTION;
  };

  const go = to => {
    now = Math.min(Math.max(to, 0), items.length - 1);
    show();
    items[now].focus({ preventScroll: true }); // a screen reader reads the item
    items[now].querySelector("mark")?.scrollIntoView({ block: "nearest" }); // in a long text
    scrollTo(0, 0);
  };

  const open = () => {
    const after = names.findIndex((name, i) => i > now && !(name in answers));
    const first = names.findIndex(name => !(name in answers));
    if (first >= 0) go(after >= 0 ? after : first);
  };

  const keep = () => {
    write(`${place}/${annotator}`, JSON.stringify(answers));
    unsaved = true;
    if (!kept) tell("This browser keeps nothing: save your answers before you close the page.", true);
  };

  const answer = word => {
    answers[names[now]] = word;
    keep();
    if (kept) tell("");
    if (count() === items.length) tell(`All ${items.length} items are answered. Save your answers and send the file.`);
    if (now < items.length - 1) go(now + 1); else show();
  };

  const begin = name => {
    annotator = name;
    answers = {};
    for (const [item, word] of Object.entries(stored(name))) if (names.includes(item)) answers[item] = word;
    write(place, name);
    const first = names.findIndex(item => !(item in answers));
    go(first < 0 ? 0 : first);
    const done = count();
    tell(done ? `Welcome back, ${name}: ${done} of ${items.length} items are answered.` : "");
  };

  const leave = () => {
    annotator = "";
    answers = {};
    now = 0;
    write(place, "");
    show();
    tell("");
    at("name").value = "";
    at("name").focus();
  };

  const save = () => {
    const rows = names.filter(name => name in answers).map(item => ({ item, relevant: answers[item] }));
    const text = JSON.stringify({ key, annotator, items: items.length, answers: rows }, null, 1);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text + "\n"], { type: "application/json" }));
    link.download = `answers-${key}-${annotator.replace(/[^\p{L}\p{N}]+/gu, "_")}.json`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    unsaved = false;
    tell(`Saved ${rows.length} of ${items.length} answers as ${link.download}.`);
  };

  const load = async file => {
    let saved;
    try { saved = JSON.parse(await file.text()); } catch { return tell(`${file.name} can't be read as saved answers.`, true); }
    if (!saved || !Array.isArray(saved.answers)) return tell(`${file.name} can't be read as saved answers.`, true);
    if (saved.key !== key) return tell(`${file.name} belongs to other items (key ${saved.key}, not ${key}).`, true);
    const theirs = String(saved.annotator || "").trim();
    if (annotator && theirs && theirs !== annotator) {
      return tell(`${file.name} has the answers of ${theirs}, not of ${annotator}: choose “Another annotator” first.`, true);
    }
    if (!annotator) begin(theirs || file.name.replace(/\.json$/, ""));
    let added = 0, other = 0;
    for (const { item, relevant } of saved.answers) {
      if (!names.includes(item) || !["yes", "no"].includes(relevant)) continue;
      if (!(item in answers)) { answers[item] = relevant; added += 1; } else if (answers[item] !== relevant) other += 1;
    }
    keep();
    const first = names.findIndex(item => !(item in answers));
    go(first < 0 ? now : first);
    tell(`Loaded ${added} answers.` + (other ? ` ${other} differ from those given here, which are kept.` : ""), other > 0);
  };

  at("begin").addEventListener("submit", event => {
    event.preventDefault();
    if (at("name").value.trim()) begin(at("name").value.trim());
  });
  at("yes").addEventListener("click", () => answer("yes"));
  at("no").addEventListener("click", () => answer("no"));
  at("back").addEventListener("click", () => go(now - 1));
  at("next").addEventListener("click", () => go(now + 1));
  at("open").addEventListener("click", open);
  at("save").addEventListener("click", save);
  at("leave").addEventListener("click", leave);
  document.querySelectorAll(".load").forEach(button => button.addEventListener("click", () => at("file").click()));
  at("file").addEventListener("change", async () => {
    if (at("file").files.length) await load(at("file").files[0]);
    at("file").value = "";
  });
  const keys = {
    y: () => answer("yes"), n: () => answer("no"), o: open,
    ArrowLeft: () => go(now - 1), ArrowRight: () => go(now + 1),
  };
  document.addEventListener("keydown", event => {
    const pressed = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    const held = event.repeat && event.key.length === 1; // an arrow may be held down, an answer not
    if (!annotator || !pressed || held || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    pressed();
  });
  addEventListener("beforeunload", event => { if (!kept && unsaved) event.preventDefault(); });

  const last = read(place);
  if (last) begin(last); else show();
}
