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
      if (at.nodeName === "TR" && at.querySelector(":checked")) at.hidden = true; else at.remove(); // ticks stay
      at = next;
    }
  }

  // filter hides the rows of a table that lack a word.
  const field = document.querySelector("[data-filter], [data-search]");
  function filter() {
    if (!field || !field.dataset.filter) return;
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of document.getElementById(field.dataset.filter).tBodies[0].rows) {
      const text = row.textContent.toLowerCase() + " " + (row.dataset.key || "").toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  }
  // The server filters the list of jobs. What is typed is in the address, which is all that keeps it.
  let typing = 0;
  if (field) field.addEventListener("input", () => {
    filter();
    if (!field.name) return;
    const here = new URL(location.href);
    if (field.value) here.searchParams.set(field.name, field.value); else here.searchParams.delete(field.name);
    here.searchParams.delete("status");
    history.replaceState(null, "", here);
    clearTimeout(typing);
    typing = setTimeout(refresh, 150);
  });
  for (const select of document.querySelectorAll("[data-now]")) select.addEventListener("change", () => select.form.requestSubmit());

  // picked says how many jobs are ticked, and lets them be compared from two on.
  function count() {
    const picked = document.getElementById("picked");
    if (!picked) return;
    const ticked = document.querySelectorAll("#chosen input:checked").length;
    const all = field && field.value && !ticked ? shownBoxes().length : 0;
    picked.textContent = ticked ? `${ticked} ticked` : "Tick two or more jobs to compare them.";
    const button = document.querySelector("#chosen .primary");
    button.disabled = ticked < 2 && (all < 2 || all > 100);
    button.textContent = all > 1 && !button.disabled ? `Compare the ${all} shown` : "Compare";
  }
  const shownBoxes = () => [...document.querySelectorAll("#jobs tbody tr:not([hidden]) input")];
  const first = new URLSearchParams(location.search).get("pick");
  for (const box of document.querySelectorAll("#chosen input")) if (box.value === first) box.checked = true;
  document.addEventListener("change", count);
  document.addEventListener("submit", (event) => {
    if (event.target.id !== "chosen" || document.querySelector("#chosen input:checked")) return;
    for (const box of shownBoxes()) box.checked = true;
  });
  addEventListener("pageshow", count);

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

  // A message tells what an action did. It goes after a while, unless it tells of a failure or somebody reads it.
  document.documentElement.classList.add("script");
  const done = document.getElementById("done");
  let closing = 0;
  function fade() {
    clearTimeout(closing);
    closing = setTimeout(() => {
      if (done.matches(":hover, :focus-within, .wrong")) fade(); else done.className = "";
    }, 8000);
  }
  function toast(text, wrong) {
    const close = Object.assign(document.createElement("button"), { type: "button", className: "close", textContent: "×" });
    close.setAttribute("aria-label", "Close the message");
    done.className = wrong ? "toast wrong" : "toast";
    done.replaceChildren(`${text} `, close);
    fade();
  }
  if (done.className) fade();
  done.addEventListener("click", (event) => { if (event.target.closest(".close")) done.className = ""; });

  // An action is done without leaving the place: only what it changes is put in.
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (form.dataset.act === undefined) return;
    event.preventDefault();
    const button = form.querySelector("button:not([type])"), part = form.closest("details");
    button.disabled = true;
    try {
      const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)), credentials: "same-origin" });
      if (answer.status === 401) { location.href = "/ui/login"; return; }
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const told = page.querySelector(answer.ok ? "#done" : "#main .wrong");
      toast(told ? told.firstChild.textContent.trim() : "Done.", !answer.ok);
      if (answer.ok && part) part.open = false;
      refresh();
    } catch { toast("The server does not answer. Try again.", true); }
    button.disabled = false;
  });

  // The pointer over a label shows its meaning, as a click, a tap or a key does.
  let hovered = null;
  document.addEventListener("pointerover", (event) => {
    const label = event.pointerType === "mouse" && event.target.closest(".what");
    if (hovered) { hovered.hidePopover(); hovered = null; }
    if (!label || !label.popoverTargetElement || label.popoverTargetElement.matches(":popover-open")) return;
    hovered = label.popoverTargetElement;
    hovered.showPopover({ source: label });
  });
  document.addEventListener("click", (event) => { if (event.target.closest(".what")) hovered = null; }, true);

  // A browser lays out the rows of a long list as they come into view, so that the page shows soon. Half a second later it
  // lays out all, since a list that is laid out scrolls without gaps between frames.
  addEventListener("load", () => setTimeout(() => document.documentElement.classList.add("settled"), 500));

  // The key / goes to the filter of the page, or to the list of jobs.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea")) return;
    event.preventDefault();
    if (field) field.focus(); else if (document.querySelector("nav")) location.href = "/ui/jobs";
  });

  // The key ? and Ctrl K open a list of the links of the page. What is typed shortens it, and Enter goes to the first.
  const go = document.getElementById("go");
  if (go) {
    const asked = go.querySelector("input"), found = go.querySelector("ul");
    const list = () => {
      const links = new Map(), words = asked.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const link of document.querySelectorAll("header a, main a[href]")) {
        const text = link.textContent.trim();
        if (text && words.every((word) => text.toLowerCase().includes(word))) links.set(link.href, links.get(link.href) || text);
      }
      found.replaceChildren(...[...links].slice(0, 9).map(([href, text]) => {
        const item = document.createElement("li");
        item.append(Object.assign(document.createElement("a"), { href, textContent: text }));
        return item;
      }));
    };
    document.addEventListener("keydown", (event) => {
      const command = event.key === "k" && (event.ctrlKey || event.metaKey);
      if (!command && (event.key !== "?" || event.target.closest("input, select, textarea")) || go.open) return;
      event.preventDefault();
      asked.value = "";
      list();
      go.showModal();
    });
    asked.addEventListener("input", () => {
      if (asked.value === "?") asked.value = ""; // the key that opened the list
      list();
    });
    go.firstElementChild.addEventListener("submit", (event) => {
      event.preventDefault();
      const first = found.querySelector("a");
      if (first) { go.close(); first.click(); }
    });
  }

  // A drawing becomes the picture that a model is asked about, as large as the pictures that it learned from.
  const canvas = document.getElementById("draw");
  if (canvas) {
    const pen = canvas.getContext("2d"), file = document.getElementById("tried");
    const clear = () => { pen.fillStyle = "#000"; pen.fillRect(0, 0, canvas.width, canvas.height); };
    const line = (event) => { pen.lineTo(event.offsetX, event.offsetY); pen.stroke(); };
    clear();
    Object.assign(pen, { lineWidth: canvas.width / 9, lineCap: "round", lineJoin: "round", strokeStyle: "#fff" });
    canvas.parentElement.hidden = false;
    canvas.addEventListener("pointerdown", (event) => { pen.beginPath(); line(event); event.preventDefault(); });
    canvas.addEventListener("pointermove", (event) => { if (event.buttons) line(event); });
    canvas.addEventListener("pointerup", () => {
      const small = document.createElement("canvas"), to = small.getContext("2d");
      [small.width, small.height] = [Number(canvas.dataset.width), Number(canvas.dataset.height)];
      to.imageSmoothingQuality = "high";
      to.drawImage(canvas, 0, 0, small.width, small.height);
      small.toBlob((data) => {
        const files = new DataTransfer();
        files.items.add(new File([data], "drawing.png", { type: "image/png" }));
        file.files = files.files;
      });
    });
    canvas.nextElementSibling.addEventListener("click", () => { clear(); file.value = ""; });
  }

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

  // Below a job file are the fields that fit at the cursor, or the values of the field in its line. A click puts one
  // in, and Ctrl Space the first. They come from the schema of job files, which is asked for with the first key.
  const offered = document.getElementById("offered");
  if (typed && offered) {
    let asked = null;
    const below = (node, key) => {
      const one = node && (node.items || node);
      return one && one.properties && one.properties[key];
    };
    // In a line, braces hold fields side by side. Of the innermost open ones, key is the field before the cursor with its
    // colon, "" for none, and word what follows. open has the fields to which the open braces belong.
    const inLine = (line) => {
      let key = "", word = "", over = false;
      const open = [];
      for (const [part] of line.matchAll(/[{},]|: |[^{},:]+|:/g)) {
        if (part === "{") { open.push(key); key = ""; word = ""; }
        else if (part === "}") { open.pop(); over = true; }
        else if (part === "," && open.length) { key = ""; word = ""; over = false; }
        else if (part === ": " && !key) { key = word.trim(); word = ""; }
        else word += part;
      }
      return over ? null : { open: open.filter(Boolean), key, word: word.trimStart() };
    };
    const fits = (schema) => {
      const lines = typed.value.slice(0, typed.selectionStart).replace(/^( *)- /gm, "$1  ").split("\n");
      const indent = /^ */.exec(lines.at(-1))[0], now = inLine(lines.pop().trimStart()), path = [];
      if (!now || typed.selectionStart !== typed.selectionEnd) return [];
      let depth = indent.length;
      for (const line of lines.reverse()) {
        const above = /^( *)(\w+):/.exec(line);
        if (above && above[1].length < depth) { path.unshift(above[2]); depth = above[1].length; }
      }
      const node = [...path, ...now.open].reduce(below, schema);
      const one = now.key ? below(node, now.key) || {} : {};
      const fields = ((node && node.items) || node || {}).properties || {};
      const values = one.enum || (one.type === "boolean" ? ["true", "false"] : []);
      const inside = now.open.length ? { object: ": {", array: ": [" } :
        { object: `:\n${indent}  `, array: `:\n${indent}  - ` };
      const all = now.key ? values.map((text) => [String(text), one.description]) :
        Object.entries(fields).map(([key, { type, description }]) => [key + (inside[type] || ": "), description]);
      return all.filter(([text]) => text.startsWith(now.word) && text !== now.word)
        .map(([text, tip]) => [text.slice(now.word.length), tip, text]);
    };
    const put = (text) => {
      typed.setRangeText(text, typed.selectionStart, typed.selectionEnd, "end");
      typed.focus();
      typed.dispatchEvent(new Event("input"));
    };
    const offer = async () => {
      asked ||= fetch("/ui/schema", { credentials: "same-origin" })
        .then((answer) => answer.ok ? answer.json() : null, () => null);
      const schema = await asked;
      offered.replaceChildren(...(schema ? fits(schema) : []).slice(0, 12).map(([text, meaning, whole]) => {
        const button = document.createElement("button");
        Object.assign(button, { type: "button", textContent: whole.split(":")[0] });
        button.dataset.tip = `${button.textContent}; ${meaning}`;
        button.addEventListener("click", () => put(text));
        return button;
      }));
    };
    for (const kind of ["input", "keyup", "click"]) typed.addEventListener(kind, offer);
    typed.addEventListener("keydown", (event) => {
      const first = offered.querySelector("button");
      if (event.key !== " " || !event.ctrlKey || !first) return;
      event.preventDefault();
      first.click();
    });
  }

  // A chart tells the values of all its lines where the pointer is, or where the arrow keys have come to. A drag, or
  // the keys + and -, shows a stretch of its axis; a double click or 0 shows all of it again.
  const tip = document.getElementById("tip");
  let read = null; // the chart that is read, and the place on its axis
  const axisOf = (svg) => svg.dataset.axis.split(" ").map(Number);
  const near = (list, x) => list.reduce((a, b) => Math.abs(b[0] - x) < Math.abs(a[0] - x) ? b : a);
  const linesOf = (svg) => [...svg.querySelectorAll("path[data-at]")]
    .map((path) => [path, path.dataset.at.split(",").map((p) => p.split(" ").map(Number))]);
  const placesOf = (svg) => [...new Set(linesOf(svg).flatMap(([, list]) => list.map((p) => p[0])))].sort((a, b) => a - b);
  const across = (svg, x) => {
    const [left, right, from, to] = axisOf(svg);
    return left + (right - left) * (x - from) / (to - from);
  };
  const under = (svg, event) => {
    const [left, right, from, to] = axisOf(svg);
    const at = new DOMPoint(event.clientX, 0).matrixTransform(svg.getScreenCTM().inverse()).x;
    return from + (to - from) * Math.min(1, Math.max(0, (at - left) / (right - left)));
  };
  const shape = (svg, name, kind, attributes) => {
    let made = svg.querySelector("." + name);
    if (!made) {
      made = document.createElementNS(svg.namespaceURI, kind);
      made.classList.add(name);
      svg.append(made);
    }
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  };
  const tall = (svg) => svg.viewBox.baseVal.height - 40;
  function still() {
    for (const mark of document.querySelectorAll(".here, .reach")) mark.remove();
    for (const mark of document.querySelectorAll(".read")) mark.classList.remove("read");
    tip.hidden = true;
    read = null;
  }
  function tell(svg, at) {
    const lines = linesOf(svg);
    if (read && read.svg !== svg) still();
    if (!lines.length) { // a timeline: each of its bars tells what it is
      if (at !== undefined) read = { ...read, svg, x: at };
      return;
    }
    const [x] = near(placesOf(svg).map((place) => [place]), at);
    read = { ...read, svg, x };
    shape(svg, "here", "line", { x1: across(svg, x), x2: across(svg, x), y1: 10, y2: tall(svg) });
    const keys = svg.closest("figure").querySelectorAll(".legend svg");
    const head = document.createElement("b"), table = document.createElement("table");
    head.textContent = `${svg.dataset.unit} ${x}`;
    lines.forEach(([path, list], i) => {
      const row = table.insertRow(), name = document.createElement("th");
      if (keys[i]) name.append(keys[i].cloneNode(true));
      name.append(` ${path.textContent}`);
      row.append(name);
      row.insertCell().textContent = near(list, x)[1];
    });
    tip.replaceChildren(head, table);
    tip.hidden = false;
    const box = svg.getBoundingClientRect(), wide = tip.offsetWidth;
    const place = box.left + box.width * across(svg, x) / svg.viewBox.baseVal.width;
    tip.style.left = `${Math.max(4, place + 14 + wide > innerWidth ? place - wide - 14 : place + 14)}px`;
    tip.style.top = `${Math.min(Math.max(4, box.top), innerHeight - tip.offsetHeight - 4)}px`;
  }
  // A mark of a sweep and a bar tell what they are where the pointer or the keyboard is. The title of a bar is for
  // pages without a script: it moves into data-tip, so that the browser does not show it too.
  const marks = "[data-tip], svg[role=img] :is(rect, path, circle):has(> title)";
  const marked = (event) => event.target.closest && event.target.closest(marks);
  const bars = (svg) => [...svg.querySelectorAll(marks)].filter((mark) => !mark.matches(".bad, .cross"));
  function name(event) {
    const mark = marked(event);
    if (mark) describe(mark, event.clientX, event.clientY);
  }
  function describe(mark, left, top) {
    const kept = mark.querySelector("title");
    if (kept) { mark.dataset.tip = kept.textContent; kept.remove(); }
    const text = mark.dataset.tip, [head, ...rest] = text.split(text.includes("; ") ? "; " : /: (.*)/).filter(Boolean);
    const title = document.createElement("b");
    title.textContent = head;
    const line = (more) => Object.assign(document.createElement("div"), { textContent: more });
    tip.replaceChildren(title, ...rest.map(line));
    tip.hidden = false;
    const box = mark.getBoundingClientRect(), x = left ?? box.right, y = top ?? box.bottom;
    tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - tip.offsetWidth - 4))}px`;
    tip.style.top = `${Math.max(4, Math.min(y + 14, innerHeight - tip.offsetHeight - 4))}px`;
  }
  // visit tells what a bar of a chart without lines is.
  function visit(svg, i) {
    const bar = bars(svg)[i], box = svg.getBoundingClientRect();
    if (!bar) return;
    still();
    bar.classList.add("read");
    describe(bar);
    const { left, width } = bar.getBoundingClientRect();
    const clientX = Math.min(Math.max(left + width / 2, box.left), box.right);
    read = { svg, bar: i, keys: true, x: svg.dataset.axis && under(svg, { clientX }) };
  }
  document.addEventListener("pointerover", name);
  document.addEventListener("focusin", name);
  for (const end of ["pointerout", "focusout"]) document.addEventListener(end, (event) => { if (marked(event)) tip.hidden = true; });
  const fields = ["from", "to"].map((id) => document.getElementById(id));
  function zoom(svg, from, to) {
    if (!fields[0] || svg.dataset.zoom === undefined) return;
    [fields[0].value, fields[1].value] = from < to ? [from, to].map((v) => String(Number(v.toPrecision(5)))) : ["", ""];
    fields[0].form.requestSubmit();
  }
  const chartOf = (event) => event.target.closest && event.target.closest("svg[data-axis]");
  document.addEventListener("pointermove", (event) => {
    const svg = chartOf(event);
    if (!svg) { if (read && !read.drag && !read.keys) still(); return; }
    tell(svg, under(svg, event));
    if (!read || read.drag === undefined || svg.dataset.zoom === undefined) return;
    const [a, b] = [read.drag, under(svg, event)].sort((p, q) => p - q).map((x) => across(svg, x));
    shape(svg, "reach", "rect", { x: a, y: 10, width: b - a, height: tall(svg) - 10 });
  });
  document.addEventListener("pointerdown", (event) => {
    const svg = chartOf(event);
    if (!svg || event.button) return;
    tell(svg, under(svg, event));
    if (read) read.drag = under(svg, event);
    event.preventDefault();
  });
  document.addEventListener("pointerup", (event) => {
    if (!read || read.drag === undefined) return;
    const { svg, drag } = read, [left, right, from, to] = axisOf(svg), end = under(svg, event);
    delete read.drag;
    for (const mark of document.querySelectorAll(".reach")) mark.remove();
    if (Math.abs(end - drag) * (right - left) > 8 * (to - from)) zoom(svg, Math.min(drag, end), Math.max(drag, end));
  });
  document.addEventListener("dblclick", (event) => { if (chartOf(event)) zoom(chartOf(event), 0, 0); });
  document.addEventListener("keydown", (event) => {
    const svg = event.target.closest("svg[tabindex]");
    if (!svg || event.ctrlKey || event.metaKey || event.altKey) return;
    const places = placesOf(svg), count = places.length || bars(svg).length;
    const now = read && read.svg === svg ? places.length ? places.indexOf(read.x) : read.bar ?? -1 : -1;
    const i = now < 0 && event.key === "ArrowLeft" ? count : now;
    const go = { ArrowLeft: i - 1, ArrowRight: i + 1, Home: 0, End: count - 1 }[event.key];
    if (go !== undefined) {
      const to = Math.min(Math.max(go, 0), count - 1);
      if (places.length) { tell(svg, places[to]); read.keys = true; } else visit(svg, to);
    } else if (event.key === "Escape") still();
    else if (!"+-0".includes(event.key) || svg.dataset.zoom === undefined) return;
    else if (event.key === "+") {
      const [, , from, end] = axisOf(svg), at = read && read.x !== undefined ? read.x : (from + end) / 2;
      zoom(svg, Math.max(from, at - (end - from) / 4), Math.min(end, at + (end - from) / 4));
    } else zoom(svg, 0, 0);
    event.preventDefault();
  });
  document.addEventListener("focusout", (event) => { if (event.target.closest("svg[tabindex]")) still(); });
  // What another axis counts has no meaning on this one.
  const axis = document.getElementById("axis");
  if (axis) axis.addEventListener("change", () => { for (const field of fields) field.value = ""; });
  // charts lets the keyboard come to charts, and shows again what was read before the page changed.
  function charts() {
    for (const svg of document.querySelectorAll("figure > svg[role=img]")) svg.setAttribute("tabindex", "0");
    if (!read || !read.svg.isConnected) return;
    if (read.bar === undefined) tell(read.svg, read.x); else visit(read.svg, read.bar);
  }
  charts();

  // refresh asks for the page anew: one request at a time, and at most two thirds of the time.
  let asking = false, again = false;
  async function refresh() {
    if (asking) { again = true; return; }
    asking = true;
    const began = performance.now();
    try {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      if (answer.status === 401) { location.href = "/ui/login"; return; }
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (answer.status === 400 && page.getElementById("fault")) { // a filter that is not whole yet
        patch(document.getElementById("fault"), page.getElementById("fault"));
      } else if (answer.ok) {
        patch(main, page.getElementById("main"));
        filter();
        count();
        charts();
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
    if (!actions.length) { now.replaceChildren(); return; }
    const table = document.createElement("table");
    table.createCaption().textContent = "Running now";
    table.createTHead().append(document.getElementById("heads").content.cloneNode(true));
    const body = table.createTBody();
    for (const a of actions) {
      const row = body.insertRow();
      for (const text of [`${a.task} ${a.member}`, a.round, a.epoch, `${a.batch} of ${a.batches}`, a.loss, a.resident, a.peak]) {
        row.insertCell().textContent = text;
      }
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
