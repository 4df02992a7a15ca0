// Keeps the page fresh: fetches its own address and changes in place what differs, so that what is
// open, focused or typed stays.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const marks = document.body.classList;
  const base = document.body.dataset.base;
  const interval = Math.max(500, Number(document.body.dataset.refresh) || 2000);
  const pause = byId("pause");
  const away = byId("away");
  let paused = false;
  let failures = 0;
  let timer = 0;
  let running = null;
  let shown = location.search;

  const isField = (node) => /^(INPUT|SELECT)$/.test(node.tagName) && node.type !== "hidden";
  const isTouched = (field) =>
    field === document.activeElement ||
    (field.options ? [...field.options].some((o) => o.selected !== o.defaultSelected) : field.value !== field.defaultValue);

  const patchAttributes = (old, next) => {
    for (const { name, value } of [...next.attributes])
      if (name !== "open" && old.getAttribute(name) !== value) old.setAttribute(name, value);
    for (const { name } of [...old.attributes])
      if (name !== "open" && !next.hasAttribute(name)) old.removeAttribute(name);
  };

  // Makes the children of old those of next; one with an id is found wherever it was.
  const patchChildren = (old, next, renew) => {
    const named = new Map([...old.children].filter((child) => child.id).map((child) => [child.id, child]));
    const ids = new Set([...next.children].map((child) => child.id));
    let at = old.firstChild;
    const pass = (drop) => {
      const passed = at;
      at = at.nextSibling;
      if (drop) passed.remove();
    };
    for (const wanted of [...next.childNodes]) {
      while (at && at.id && !ids.has(at.id)) pass(true);
      const found = wanted.id ? named.get(wanted.id) : at;
      if (!found || found.nodeName !== wanted.nodeName || (found.id || "") !== (wanted.id || "")) {
        old.insertBefore(document.importNode(wanted, true), at);
        continue;
      }
      if (found === at) pass();
      else old.insertBefore(found, at);
      patch(found, wanted, renew);
    }
    while (at) pass(true);
  };

  // renew: the reader asked for another view, so fields say what the server says.
  const patch = (old, next, renew) => {
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.nodeValue !== next.nodeValue) old.nodeValue = next.nodeValue;
      return;
    }
    if (isField(old) && !renew && isTouched(old)) return;
    if (!old.isEqualNode(next)) {
      patchAttributes(old, next);
      patchChildren(old, next, renew);
    }
    if (isField(old)) old.value = next.value;
  };

  // The server tells times in UTC. Shown is the viewer's zone, and UTC on hover.
  const two = (number) => String(number).padStart(2, "0");
  const day = (at) => at.getFullYear() + "-" + two(at.getMonth() + 1) + "-" + two(at.getDate());
  const zone = new Intl.DateTimeFormat("en", { timeZoneName: "short" }).formatToParts().pop().value;
  const localise = (page) => {
    const today = day(new Date(page.querySelector("#updated time").dateTime));
    for (const time of page.querySelectorAll("time")) {
      const at = new Date(time.dateTime);
      const clock = two(at.getHours()) + ":" + two(at.getMinutes()) + ":" + two(at.getSeconds());
      time.title = time.dateTime.replace("T", " ").replace(/(\.\d+)?Z$/, " UTC");
      time.textContent = day(at) === today ? clock : day(at) + " " + clock;
    }
    for (const name of page.querySelectorAll(".zone")) name.textContent = zone;
  };

  const show = (text, renew) => {
    const next = new DOMParser().parseFromString(text, "text/html");
    if (!next.getElementById("updated")) return false;
    localise(next);
    const focused = document.activeElement;
    document.title = next.title;
    for (const id of ["updated", "refresh", "status", "main"]) patch(byId(id), next.getElementById(id), renew);
    if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
    return true;
  };

  const say = (text) => {
    marks.toggle("paused", paused);
    marks.toggle("lost", failures > 0);
    marks.remove("fresh");
    if (away.textContent !== text) away.textContent = text;
    away.hidden = !text;
  };

  const lost = (why) => {
    failures += 1;
    say(why + " Shown is what was known at " + byId("updated").textContent.trim() + ".");
  };

  const schedule = () => {
    clearTimeout(timer);
    if (!paused && !document.hidden) timer = setTimeout(refresh, Math.min(interval * 2 ** failures, 30000));
  };

  async function refresh() {
    if (running) running.abort();
    const { pathname, search } = location;
    const mine = (running = new AbortController());
    const limit = setTimeout(() => mine.abort(), 15000);
    try {
      const answer = await fetch(pathname + search, { signal: mine.signal, cache: "no-cache" });
      const text = await answer.text();
      if (mine !== running) return;
      if (answer.status === 401 || answer.redirected) lost("You are signed out: load the page again.");
      else if (!answer.ok || !show(text, search !== shown)) lost("The server answers with an error (" + answer.status + ").");
      else {
        failures = 0;
        shown = search;
        say("");
        requestAnimationFrame(() => marks.add("fresh"));
      }
    } catch {
      if (mine === running) lost("The server does not answer; trying again.");
    }
    clearTimeout(limit);
    if (mine === running) {
      running = null;
      schedule();
    }
  }

  const go = async (address) => {
    history.pushState(null, "", address);
    await refresh();
    const target = byId(decodeURIComponent(location.hash.slice(1)));
    const top = target ? target.getBoundingClientRect().top : 0;
    if (top < 0 || top > innerHeight) target.scrollIntoView();
  };

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='" + base + "/']");
    if (!link || !/^\/($|[?#])/.test(link.getAttribute("href").slice(base.length)) || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    if (link.id === "refresh") refresh();
    else go(link.getAttribute("href"));
  });

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "get") return;
    event.preventDefault();
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value)).toString();
    go(base + "/" + (query && "?" + query) + new URL(form.action).hash);
  });

  localise(document);
  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    say(away.textContent);
    if (paused) clearTimeout(timer);
    else refresh();
  });
  addEventListener("popstate", refresh);
  document.addEventListener("visibilitychange", () => (document.hidden || paused ? clearTimeout(timer) : refresh()));
  schedule();
})();
