// Keeps a page as it is on the server: when the server says that something has happened, the page is asked for anew, and
// what is different is put in its place. What the user has marked, typed, opened or scrolled stays.
"use strict";
(() => {
  const main = document.getElementById("main");
  const state = document.getElementById("state");
  const say = (text) => { if (state && state.textContent !== text) state.textContent = text; };

  // key tells which child is which across two versions of a page.
  const key = (node) => node.nodeType === 1 ? node.id || node.dataset.key || "" : "";
  const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && key(a) === key(b);

  // patch makes an element what another one is, and keeps all of it that can stay.
  function patch(old, now) {
    if (old.nodeType !== 1) {
      if (old.data !== now.data) old.data = now.data;
      return;
    }
    if (old.dataset.keep !== undefined) return;
    for (const { name, value } of now.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    for (const { name } of [...old.attributes]) {
      if (!now.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
    }
    if (old.nodeName === "INPUT" || old.nodeName === "SELECT") return;
    const keyed = new Map();
    for (const child of old.childNodes) if (key(child)) keyed.set(key(child), child);
    let at = old.firstChild;
    for (const child of [...now.childNodes]) {
      let found = at && alike(at, child) ? at : keyed.get(key(child));
      if (found && !alike(found, child)) found = undefined;
      if (!found) {
        old.insertBefore(document.importNode(child, true), at);
        continue;
      }
      if (found === at) at = at.nextSibling; else old.insertBefore(found, at);
      patch(found, child);
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  }

  // filter hides the rows of a table that lack a word.
  const field = document.querySelector("[data-filter]");
  function filter() {
    if (!field) return;
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of document.getElementById(field.dataset.filter).tBodies[0].rows) {
      const text = row.textContent.toLowerCase() + " " + (row.dataset.key || "").toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  }
  // What is typed into the list of jobs is in the address, which is all that keeps it.
  if (field) field.addEventListener("input", () => {
    filter();
    if (!field.name) return;
    const here = new URL(location.href);
    if (field.value) here.searchParams.set(field.name, field.value); else here.searchParams.delete(field.name);
    history.replaceState(null, "", here);
  });

  // picked says how many jobs are ticked, and lets them be compared from two on.
  const picked = document.getElementById("picked");
  function count() {
    if (!picked) return;
    const ticked = document.querySelectorAll("#chosen input:checked").length;
    picked.textContent = ticked ? `${ticked} ticked` : "Tick two or more jobs to compare them.";
    document.querySelector("#chosen button").disabled = ticked < 2;
  }
  if (picked) {
    const first = new URLSearchParams(location.search).get("pick");
    for (const box of document.querySelectorAll("#chosen input")) if (box.value === first) box.checked = true;
    document.getElementById("chosen").addEventListener("change", count);
    addEventListener("pageshow", count);
  }

  // A click copies the command beside the button. Browsers allow it only on pages with TLS and of this machine.
  if (navigator.clipboard) document.documentElement.classList.add("may-copy");
  document.addEventListener("click", async (event) => {
    const button = event.target.closest(".copy");
    if (!button) return;
    const label = button.textContent;
    await navigator.clipboard.writeText(button.dataset.copy ? location.href : button.previousElementSibling.textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 1500);
  });

  // The key / goes to the filter of the page, or to the list of jobs.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea")) return;
    event.preventDefault();
    if (field) field.focus(); else if (document.querySelector("nav")) location.href = "/ui/jobs";
  });

  // A job file is checked while it is typed: half a second after the last key, one check at a time.
  const typed = document.querySelector("[data-check]");
  if (typed) {
    let timer = 0, busy = false, newer = false;
    const check = async () => {
      if (busy) { newer = true; return; }
      busy = true;
      try {
        const body = new URLSearchParams(new FormData(typed.form));
        const answer = await fetch(typed.dataset.check, { method: "POST", body, credentials: "same-origin" });
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const checked = page.getElementById("checked");
        if (answer.ok && checked) patch(document.getElementById("checked"), checked);
      } catch { say("the server does not answer"); }
      busy = false;
      if (newer) { newer = false; check(); }
    };
    typed.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(check, 500); });
  }

  // refresh asks for the page anew: one request at a time, and at most two thirds of the time.
  const loaded = location.href; // without what is typed since: rows that the filter hides have to stay
  let asking = false, again = false;
  async function refresh() {
    if (asking) { again = true; return; }
    asking = true;
    const began = performance.now();
    try {
      const answer = await fetch(loaded, { credentials: "same-origin" });
      if (answer.status === 401) { location.href = "/ui/login"; return; }
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        patch(main, page.getElementById("main"));
        filter();
        count();
      }
    } catch { say("the server does not answer"); }
    setTimeout(() => {
      asking = false;
      if (again) { again = false; refresh(); }
    }, (performance.now() - began) / 2);
  }

  // progress shows how far the actions of a job are that run.
  function progress(actions) {
    const now = document.getElementById("now");
    if (!now) return;
    const table = document.createElement("table");
    table.createCaption().textContent = "Running now";
    const cells = (row, kind, list) => list.forEach((text) => {
      const cell = document.createElement(kind);
      if (kind === "th") cell.scope = "col";
      cell.textContent = text;
      row.append(cell);
    });
    cells(table.createTHead().insertRow(), "th", ["Action", "Round", "Epoch", "Batch", "Loss", "Memory", "Peak"]);
    const body = table.createTBody();
    for (const a of actions) {
      cells(body.insertRow(), "td", [`${a.task} ${a.member}`, a.round, a.epoch, `${a.batch} of ${a.batches}`, a.loss, a.resident, a.peak]);
    }
    now.replaceChildren(table);
  }

  if (main && main.dataset.live) {
    const stream = new EventSource(main.dataset.live);
    let open = false;
    stream.addEventListener("open", () => { say("live"); if (open) refresh(); open = true; });
    stream.addEventListener("error", () => say("connecting"));
    stream.addEventListener("changed", refresh);
    stream.addEventListener("progress", (event) => progress(JSON.parse(event.data)));
    stream.addEventListener("over", () => { stream.close(); say(""); refresh(); });
    addEventListener("pagehide", () => stream.close());
  }
})();
