"use strict";
{
  // The elements that hold the text of the log; see the package documentation.
  const TEXT = "main pre:not([class]), main code, #view code";
  const MAX_HEIGHT = 15e6; // CSS pixels; Firefox limits an element to about 18 million
  const MAX_ROW = 20000; // UTF-16 units of a line that are shown; more make layout slow
  const MAX_SEARCHED = 400 << 20; // UTF-16 units that stay in memory for the search
  const SLICE = 12; // milliseconds of work between two frames

  const one = (selector) => document.querySelector(selector);
  const number = (n) => n.toLocaleString("en-US");

  // make returns a new element with attributes and children.
  const make = (name, attributes, ...children) => {
    const e = document.createElement(name);
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    e.append(...children);
    return e;
  };

  // pause lets the browser draw and handle events.
  const channel = new MessageChannel();
  const waiting = [];
  channel.port1.onmessage = () => waiting.shift()();
  const pause = () => new Promise((next) => { waiting.push(next); channel.port2.postMessage(0); });

  // ---- The plain part of the page

  // plain holds the elements of <main> with text of the log, and where the text of each begins.
  let plain;
  const plainText = () => {
    if (plain) return plain;
    plain = { parts: [], text: "" };
    for (const element of document.querySelectorAll("main pre:not([class]), main code")) {
      plain.parts.push({ element, at: plain.text.length });
      plain.text += element.textContent;
    }
    return plain;
  };

  // rangeOf returns a range of the plain text.
  const rangeOf = (from, to) => {
    const { parts } = plainText();
    let i = parts.findLastIndex((p) => p.at <= from);
    const range = document.createRange();
    let at = parts[i].at, started = false;
    for (; i < parts.length; i++) {
      const nodes = document.createTreeWalker(parts[i].element, NodeFilter.SHOW_TEXT);
      for (let n; (n = nodes.nextNode()); at += n.length) {
        if (!started && from < at + n.length) {
          range.setStart(n, from - at);
          started = true;
        }
        if (started && to <= at + n.length) {
          range.setEnd(n, to - at);
          return range;
        }
      }
    }
    return range;
  };

  // unfold opens every element that hides node.
  const unfold = (node) => {
    for (let e = node; e; e = e.parentElement) {
      const d = e.parentElement;
      if (d && d.localName === "details" && e !== d.querySelector(":scope > summary")) d.open = true;
    }
  };

  // The rule is not in the style: a browser that does not know it would skip more than the rule.
  const lit = self.Highlight && CSS.highlights ? new Highlight() : null;
  if (lit) {
    CSS.highlights.set("now", lit);
    document.styleSheets[0].insertRule("::highlight(now) { background: var(--now); color: var(--text); }");
  }
  const unlight = () => lit && lit.clear();

  // settle scrolls until an element stays at its place for three frames: what the browser has not
  // laid out yet has another size than it assumes. A later call, or the reader who scrolls, ends it.
  let settling = 0;
  for (const kind of ["wheel", "pointerdown", "touchstart"]) addEventListener(kind, () => { settling++; }, { passive: true });
  const settle = async (element, scroll) => {
    const mine = ++settling;
    for (let last = NaN, same = 0, i = 0; same < 3 && i < 20 && mine === settling; i++) {
      const at = element.getBoundingClientRect().top;
      same = Math.abs(at - last) < 1 ? same + 1 : 0;
      scroll();
      last = element.getBoundingClientRect().top;
      await new Promise(requestAnimationFrame);
    }
  };

  // reveal scrolls to a part of the plain text and marks it.
  const reveal = (from, to) => {
    const range = rangeOf(from, to);
    unfold(range.startContainer);
    if (lit) {
      lit.clear();
      lit.add(range);
    } else {
      getSelection().removeAllRanges();
      getSelection().addRange(range);
    }
    return settle(range, () => {
      // A range in a block that the browser has not laid out yet has no place.
      if (!range.getClientRects().length) range.startContainer.parentElement.scrollIntoView({ behavior: "instant" });
      const box = range.getBoundingClientRect();
      scrollBy({ top: box.top + box.height / 2 - innerHeight / 2, behavior: "instant" });
    });
  };

  const bring = (element) => settle(element, () => element.scrollIntoView({ block: "nearest", behavior: "instant" }));

  // lineStart returns the offset of a line in text, which is counted from 0.
  const lineStart = (text, line) => {
    let at = 0;
    for (; line > 0 && at >= 0; line--) at = text.indexOf("\n", at) + 1 || -1;
    return at;
  };

  // lineAt returns the number of line ends before an offset.
  const lineAt = (text, offset) => {
    let n = 0;
    for (let i = text.indexOf("\n"); i >= 0 && i < offset; i = text.indexOf("\n", i + 1)) n++;
    return n;
  };

  // Copied text is the text of the log alone, that of folded frames too.
  document.addEventListener("copy", (event) => {
    const selection = getSelection();
    if (!selection.rangeCount || selection.isCollapsed) return;
    const all = selection.getRangeAt(0);
    let text = "";
    for (const element of document.querySelectorAll(TEXT)) {
      if (!all.intersectsNode(element)) continue;
      const part = document.createRange();
      part.selectNodeContents(element);
      if (part.compareBoundaryPoints(Range.START_TO_START, all) < 0) part.setStart(all.startContainer, all.startOffset);
      if (part.compareBoundaryPoints(Range.END_TO_END, all) > 0) part.setEnd(all.endContainer, all.endOffset);
      text += part.toString();
    }
    if (!text) return;
    event.clipboardData.setData("text/plain", text);
    event.preventDefault();
  });

  // A popover appears below the value that was clicked, or above it.
  let clicked = null;
  document.addEventListener("click", (event) => { clicked = event.target.closest("[popovertarget]"); }, true);
  document.addEventListener("toggle", (event) => {
    const popover = event.target;
    if (event.newState !== "open" || !popover.matches("[popover]") || !clicked) return;
    popover.classList.add("near");
    const at = clicked.getClientRects()[0];
    const below = at.bottom + 4 + popover.offsetHeight <= innerHeight;
    popover.style.top = `${below ? at.bottom + 4 : Math.max(0, at.top - 4 - popover.offsetHeight)}px`;
    popover.style.left = `${Math.max(0, Math.min(at.left, document.documentElement.clientWidth - popover.offsetWidth - 8))}px`;
  }, true);

  // The paper shows everything.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const d of opened) d.open = true;
  });
  addEventListener("afterprint", () => { for (const d of opened) d.open = false; });

  if (one("main details")) {
    const button = make("button", { type: "button" }, "Unfold all");
    button.addEventListener("click", () => {
      const open = button.textContent === "Unfold all";
      for (const d of document.querySelectorAll("details:not(.b, .t)")) d.open = open;
      button.textContent = open ? "Fold all" : "Unfold all";
    });
    one("header").append(button);
  }

  // ---- The chunks of a large page

  const chunks = [...document.querySelectorAll("script[type='text/x-gz']")].map((script) => (
    { script, gz: null, first: Number(script.dataset.first), lines: Number(script.dataset.lines), search: null }
  ));
  const first = chunks.length ? chunks[0].first : 0; // the number of the first line in a chunk
  const lines = chunks.reduce((n, c) => n + c.lines, 0);

  // compressed returns the bytes of a chunk and removes their base64 from the page.
  const compressed = (chunk) => {
    if (chunk.gz) return chunk.gz;
    const text = chunk.script.textContent.trim();
    if (Uint8Array.fromBase64) {
      chunk.gz = Uint8Array.fromBase64(text);
    } else {
      const bytes = atob(text);
      chunk.gz = new Uint8Array(bytes.length);
      for (let i = 0; i < bytes.length; i++) chunk.gz[i] = bytes.charCodeAt(i);
    }
    chunk.script.remove();
    chunk.script = null;
    return chunk.gz;
  };

  const inflate = (chunk) => new Response(
    new Blob([compressed(chunk)]).stream().pipeThrough(new DecompressionStream("gzip")),
  ).text();

  // linesOf returns the lines of a chunk with their marks. The last few chunks stay in memory.
  const recent = new Map();
  const linesOf = async (chunk) => {
    let all = recent.get(chunk);
    if (!all) {
      const text = await inflate(chunk);
      all = text.split("\n");
      if (text.endsWith("\n")) all.pop();
    }
    recent.delete(chunk);
    recent.set(chunk, all);
    if (recent.size > 6) recent.delete(recent.keys().next().value);
    return all;
  };

  // without removes the marks of a text.
  const without = (text) => {
    if (text.includes("\x1b")) text = text.replace(/\x1b[^\x1b\n]*\x1b/g, "");
    if (text.includes("\x04") || text.includes("\x05")) text = text.replace(/\x04\d*\x04|\x05[^\x05\n]*\x05/g, "");
    return text;
  };

  // searched returns the text of a chunk in lower case.
  let kept = 0;
  const searched = async (chunk) => {
    if (chunk.search !== null) return chunk.search;
    const text = without(await inflate(chunk)).toLowerCase();
    if (kept + text.length <= MAX_SEARCHED) {
      kept += text.length;
      chunk.search = text;
    }
    return text;
  };

  // ---- The window over the chunks

  const view = one("#view");
  const rows = make("div", { class: "rows" }); // the lines that are drawn
  const space = make("div", { class: "space" }, make("div", { class: "pane" }, rows));
  let rowHeight = 18;
  let top = 0; // the first line that is shown, counted from 0; its fraction is above the window
  let perLine = 1; // pixels of scroll position per line
  let placed = -1; // the scroll position that was set last
  let drawing = 0; // how often draw was called
  let drawn = 0; // the first line in rows
  let atEnd = false; // the last line is at the lower edge of the window
  let query = ""; // in lower case
  let current = null; // the match that is shown: { part, offset, nth }, or null
  let target = -1; // the line that #L names, counted from 0

  // chunkOf returns the index of the chunk with a line.
  const chunkOf = (line) => {
    let low = 0, high = chunks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (chunks[middle].first - first <= line) low = middle;
      else high = middle - 1;
    }
    return low;
  };

  // rowOf returns the element of a line. nth is the match of the line that is marked, or -1.
  const rowOf = (line, text, nth) => {
    const row = make("div", { class: "row" });
    const code = make("code", {});
    if (line === target) row.classList.add("target");
    const input = /^\x05([^\x05]*)\x05/.exec(text);
    if (input) text = text.slice(input[0].length);
    const stack = /^\x04(\d*)\x04/.exec(text);
    if (stack) text = text.slice(stack[0].length);
    const kind = "\x01\x02\x03".indexOf(text[0]);
    if (text && kind >= 0) {
      text = text.slice(1);
      row.classList.add(["own", "system", "u"][kind]);
    }
    const parts = text.split("\x1b"); // text, classes, text, …
    let plain = "";
    for (let i = 0; i < parts.length; i += 2) plain += parts[i];
    const lower = plain.toLowerCase();
    const found = []; // offsets of matches
    if (query && lower.length === plain.length) {
      for (let i = lower.indexOf(query); i >= 0; i = lower.indexOf(query, i + query.length)) found.push(i);
    }
    // What is shown of a long line: its beginning, or what is around the current match.
    const from = nth >= 0 && found[nth] > MAX_ROW / 2 ? found[nth] - MAX_ROW / 2 : 0;
    const to = Math.min(plain.length, from + MAX_ROW);
    if (from > 0) code.append(make("i", {}, `${number(from)} characters … `));
    let at = 0, hit = 0;
    for (let i = 0; i < parts.length; i += 2) {
      const holder = i > 0 && parts[i - 1] ? make("span", { class: parts[i - 1] }) : code;
      const end = Math.min(at + parts[i].length, to);
      for (let a = Math.max(at, from); a < end;) {
        while (hit < found.length && found[hit] + query.length <= a) hit++;
        let b = end;
        if (hit < found.length && found[hit] <= a) {
          b = Math.min(end, found[hit] + query.length);
          holder.append(make("mark", hit === nth ? { class: "now" } : {}, plain.slice(a, b)));
        } else {
          if (hit < found.length) b = Math.min(end, found[hit]);
          holder.append(plain.slice(a, b));
        }
        a = b;
      }
      if (holder !== code && holder.hasChildNodes()) code.append(holder);
      at += parts[i].length;
    }
    if (to < plain.length) code.append(make("i", {}, ` … ${number(plain.length - to)} characters`));
    code.append("\n");
    if (input) row.append(make("h3", {}, input[1]));
    row.append(make("a", { class: "n", href: `#L${first + line}`, tabindex: "-1" }, number(first + line)), code);
    if (stack && stack[1]) row.append(make("a", { class: "at", href: `#c${stack[1]}` }, `Backtrace ${stack[1]}`));
    return row;
  };

  // textsOf returns the lines from..to.
  const textsOf = async (from, to) => {
    const all = [];
    for (let i = chunkOf(from); i < chunks.length && chunks[i].first - first < to; i++) {
      const start = chunks[i].first - first;
      all.push(...(await linesOf(chunks[i])).slice(Math.max(0, from - start), Math.max(0, to - start)));
    }
    return all;
  };

  // draw shows the lines from top on.
  const draw = async () => {
    const mine = ++drawing;
    const height = view.clientHeight;
    const many = Math.ceil(height / rowHeight) + 2;
    top = Math.max(0, Math.min(top, lines - 1));
    const from = Math.max(0, Math.min(Math.floor(top), lines - many));
    const to = Math.min(lines, from + 2 * many);
    const texts = await textsOf(from, to);
    if (mine !== drawing) return; // a later call draws
    const nth = (line) => (current && current.line === line ? current.nth : -1);
    rows.replaceChildren(...texts.map((text, i) => rowOf(from + i, text, nth(from + i))));
    drawn = from;
    // The last line leaves no space below it.
    const row = rows.children[Math.floor(top) - from];
    let above = row ? row.offsetTop + (top % 1) * row.offsetHeight : 0;
    const most = to === lines ? Math.max(0, rows.offsetHeight - height) : Infinity;
    atEnd = above >= most;
    if (atEnd) {
      above = most;
      const i = [...rows.children].findLastIndex((e) => e.offsetTop <= most);
      top = from + i + (most - rows.children[i].offsetTop) / rows.children[i].offsetHeight;
    }
    rows.style.top = `${-above}px`;
    view.dataset.top = String(first + Math.floor(top)); // the number of the line at the top
  };

  // place sets the scroll position to that of top, and draws.
  const place = () => {
    view.scrollTop = top * perLine;
    placed = view.scrollTop;
    return draw();
  };

  // measure reads the sizes that depend on the font and the window.
  const measure = () => {
    const row = rowOf(0, "x", -1);
    rows.replaceChildren(row);
    rowHeight = row.offsetHeight || 18;
    const height = Math.min(lines * rowHeight, MAX_HEIGHT);
    space.style.height = `${height}px`;
    rows.parentElement.style.height = `${view.clientHeight}px`;
    perLine = Math.max(1e-9, height - view.clientHeight) / Math.max(1, lines - view.clientHeight / rowHeight);
    return place();
  };

  // move moves the window by pixels, down if they are positive. It reports whether it could.
  const move = (pixels) => {
    if (pixels > 0 ? atEnd : top === 0) return false;
    const heightOf = (line) => rows.children[line - drawn]?.offsetHeight ?? rowHeight;
    let line = Math.floor(top);
    let rest = (top % 1) * heightOf(line) + pixels;
    while (rest >= heightOf(line) && line < lines - 1) rest -= heightOf(line++);
    while (rest < 0 && line > 0) rest += heightOf(--line);
    top = line + Math.min(0.999, Math.max(0, rest / heightOf(line)));
    place();
    return true;
  };

  // show scrolls the window so that a line, counted from 0, and its current match are visible.
  const show = async (line) => {
    top = Math.max(0, line - Math.floor(view.clientHeight / rowHeight / 2));
    await place();
    const row = rows.children[line - drawn];
    if (!row) return; // a later call draws
    const box = (row.querySelector(".now") ?? row).getBoundingClientRect();
    const window = view.getBoundingClientRect();
    if (box.top < window.top || box.bottom > window.bottom) {
      move((box.top + Math.min(box.bottom, box.top + rowHeight) - window.top - window.bottom) / 2);
    }
  };

  // ---- The search

  // partText returns what is searched: part 0 is the plain text, part i chunk i-1.
  let plainLower = null;
  const partText = (part) => {
    if (part > 0) return chunks[part - 1].search ?? searched(chunks[part - 1]);
    if (plainLower === null) plainLower = plainText().text.toLowerCase();
    return plainLower;
  };

  const count = (text, word, end = Infinity) => {
    let n = 0;
    for (let i = text.indexOf(word); i >= 0 && i < end; i = text.indexOf(word, i + word.length)) n++;
    return n;
  };

  // lastBefore returns where the last of the matches that count finds before end begins, or -1.
  const lastBefore = (text, word, end) => {
    let last = -1;
    for (let i = text.indexOf(word); i >= 0 && i < end; i = text.indexOf(word, i + word.length)) last = i;
    return last;
  };

  let counts = []; // matches of each part
  let searching = 0; // how often find was called
  let output, box;

  const report = (done) => {
    const all = counts.reduce((a, b) => a + b, 0);
    let text = "";
    if (query) {
      text = all ? `${number(all)} found` : done ? "Not found" : "Searching";
      if (current && current.ordinal >= 0) text = `${number(current.ordinal)} of ${number(all)}`;
      if (!done && all) text += " so far";
    }
    output.textContent = text;
  };

  // find counts the matches of a word in all parts and shows the first one from the current match on.
  const find = async (word) => {
    const mine = ++searching;
    const start = current ? { part: current.part, offset: current.offset } : { part: 0, offset: 0 };
    query = word.toLowerCase();
    current = null;
    counts = new Array(chunks.length + 1).fill(0);
    unlight();
    if (!query) {
      report(true);
      draw();
      return;
    }
    let since = performance.now();
    for (let part = 0; part <= chunks.length; part++) {
      let text = partText(part);
      if (typeof text !== "string") text = await text;
      if (mine !== searching) return;
      counts[part] = count(text, query);
      if (performance.now() - since > SLICE) {
        report(false);
        await pause();
        if (mine !== searching) return;
        since = performance.now();
      }
    }
    report(true);
    await step(1, start);
  };

  // step shows the next match after a position, or the one before it; at the end it begins again.
  const step = async (direction, from) => {
    const mine = searching;
    if (!counts.some((n) => n > 0)) {
      draw();
      return;
    }
    const parts = chunks.length + 1;
    let { part, offset } = from ?? (current ?? { part: 0, offset: 0 });
    if (!from && current && direction > 0) offset += query.length;
    for (let i = 0; i <= parts; i++, part = (part + direction + parts) % parts) {
      if (!counts[part]) {
        offset = direction > 0 ? 0 : Infinity;
        continue;
      }
      const text = await partText(part);
      if (mine !== searching) return;
      const at = direction > 0 ? text.indexOf(query, offset) : lastBefore(text, query, offset);
      if (at >= 0) {
        await match(part, at, text);
        return;
      }
      offset = direction > 0 ? 0 : Infinity;
    }
  };

  // match shows a match.
  const match = async (part, offset, text) => {
    const before = text.lastIndexOf("\n", offset - 1) + 1;
    current = { part, offset, line: -1, nth: count(text.slice(before, offset), query) };
    current.ordinal = 1 + count(text, query, offset);
    for (let i = 0; i < part; i++) current.ordinal += counts[i];
    report(true);
    unlight();
    if (part === 0) {
      if (plainText().text.length === text.length) await reveal(offset, offset + query.length);
      await draw();
      return;
    }
    const chunk = chunks[part - 1];
    current.line = chunk.first - first + Math.min(lineAt(text, offset), chunk.lines - 1);
    await show(current.line);
    await bring(view);
  };

  // go shows the line that the address names: #L123.
  const go = async () => {
    const m = /^#L(\d+)$/.exec(location.hash);
    if (!m) return;
    const line = Number(m[1]);
    if (chunks.length && line >= first) {
      if (line >= first + lines) return;
      target = line - first;
      await show(target);
      await bring(view);
      view.focus({ preventScroll: true });
      return;
    }
    const { text } = plainText();
    const from = lineStart(text, line - 1);
    if (line < 1 || from < 0 || from >= text.length) return;
    const end = text.indexOf("\n", from);
    await reveal(from, end < 0 ? text.length : Math.max(end, from + 1));
  };
  addEventListener("hashchange", go);

  // listen connects the window with the mouse and the keyboard.
  const listen = () => {
    view.addEventListener("scroll", () => {
      if (Math.abs(view.scrollTop - placed) < 1) return;
      placed = view.scrollTop;
      top = view.scrollTop / perLine;
      draw();
    });
    view.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.shiftKey || !event.deltaY) return;
      const unit = [1, rowHeight, view.clientHeight][event.deltaMode];
      if (move(event.deltaY * unit)) event.preventDefault();
    }, { passive: false });
    view.addEventListener("keydown", (event) => {
      if (event.target !== view || event.ctrlKey || event.altKey || event.metaKey) return;
      const page = view.clientHeight - rowHeight;
      switch (event.key) {
        case "ArrowDown": move(rowHeight); break;
        case "ArrowUp": move(-rowHeight); break;
        case "PageDown": move(page); break;
        case "PageUp": move(-page); break;
        case " ": move(event.shiftKey ? -page : page); break;
        case "Home": top = 0; place(); break;
        case "End": top = lines; place(); break;
        default: return;
      }
      event.preventDefault();
    });
    new ResizeObserver(measure).observe(view);
  };

  // searchForm adds the search to the head of the page.
  const searchForm = () => {
    box = make("input", { type: "search", id: "word", autocomplete: "off", spellcheck: "false" });
    output = make("output", { for: "word" });
    const button = (text, direction) => {
      const b = make("button", { type: "button" }, text);
      b.addEventListener("click", () => step(direction));
      return b;
    };
    const form = make("form", { role: "search" },
      make("label", { for: "word" }, "Search"), box, button("Previous", -1), button("Next", 1), output);
    box.addEventListener("input", () => find(box.value));
    form.addEventListener("submit", (event) => event.preventDefault());
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      if (event.key === "F3" || (event.key === "Enter" && event.target === box)) step(event.shiftKey ? -1 : 1);
      else if (event.key === "/" && event.target !== box) box.focus();
      else return;
      event.preventDefault();
    });
    one("header").append(form);
  };

  // load reads every chunk once, so that a search need not.
  const load = async () => {
    const since = performance.now();
    for (let i = 0; i < chunks.length; i++) {
      await searched(chunks[i]);
      if (!query) output.textContent = i + 1 < chunks.length ? `${Math.round(100 * (i + 1) / chunks.length)} % read` : "";
    }
    view.dataset.loaded = String(Math.round(performance.now() - since)); // milliseconds
  };

  const start = async () => {
    if (self.DecompressionStream) {
      searchForm();
      view.setAttribute("tabindex", "0");
      view.setAttribute("role", "region");
      view.setAttribute("aria-label", `Lines ${number(first)} to ${number(first + lines - 1)}`);
      view.append(space);
      listen();
      await measure();
      one("#blocked").remove();
      await go();
      await load();
    } else {
      one("#blocked").textContent = "This part needs a newer browser.";
    }
  };
  if (chunks.length) start();
  else go();
}
