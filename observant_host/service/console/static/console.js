// Keeps an open page true: told by server-sent events that something changed, it reads itself again
// and swaps the parts that are marked. Without it every page works by reload.
(() => {
  "use strict";

  const QUIET_MS = 150; // changes come in bursts: one reading for all of them
  const ANYWAY_MS = 30000; // "5 min ago" grows old by itself
  const told = document.getElementById("told");
  const link = document.getElementById("link");
  let timer = 0;
  let reading = false;
  let again = false;

  const parse = (text) => new DOMParser().parseFromString(text, "text/html");

  function keep(old, fresh) {
    for (const field of old.querySelectorAll("input[id], textarea[id], select[id]")) {
      const same = fresh.querySelector("#" + CSS.escape(field.id));
      if (same && field.type !== "hidden" && field.value !== "") same.value = field.value;
    }
    for (const open of old.querySelectorAll("details[id][open]")) {
      const same = fresh.querySelector("#" + CSS.escape(open.id));
      if (same) same.open = true;
    }
  }

  function swap(page) {
    for (const old of document.querySelectorAll("[data-live]")) {
      const found = page.getElementById(old.id);
      if (!found || found.outerHTML === old.outerHTML) continue;
      const fresh = document.importNode(found, true);
      const focused = old.contains(document.activeElement) ? document.activeElement : null;
      const from = focused && "selectionStart" in focused ? focused.selectionStart : null;
      keep(old, fresh);
      old.replaceWith(fresh);
      if (!focused) continue;
      const href = focused.getAttribute("href");
      const same = focused.id
        ? document.getElementById(focused.id)
        : href && [...fresh.querySelectorAll("a[href]")].find((a) => a.getAttribute("href") === href);
      if (same) {
        same.focus({ preventScroll: true });
        if (from !== null && "setSelectionRange" in same) {
          try { same.setSelectionRange(from, from); } catch { /* a field without a caret */ }
        }
      } else {
        document.getElementById("main").focus({ preventScroll: true });
      }
    }
  }

  async function read(address = location.href) {
    if (reading) { again = true; return; }
    reading = true;
    try {
      const answer = await fetch(address, { credentials: "same-origin", redirect: "manual" });
      if (answer.type === "opaqueredirect") { location.reload(); return; }
      if (answer.ok || answer.status === 404) swap(parse(await answer.text()));
    } catch {
      lost(true);
    } finally {
      reading = false;
      if (again) { again = false; soon(); }
    }
  }

  function soon() {
    if (timer) return;
    timer = setTimeout(() => { timer = 0; read(); }, QUIET_MS);
  }

  function lost(is) {
    if (!link) return;
    link.hidden = !is;
    link.textContent = is ? "No connection to the host; trying again" : "";
  }

  const states = new Map();

  function say(event) {
    let server;
    try { server = JSON.parse(event.data); } catch { return; }
    if (!server.name) return;
    const now = server.removed ? "removed" : server.state;
    const before = states.get(server.name);
    states.set(server.name, now);
    if (before === now || before === undefined && now === "ready") return;
    told.textContent = `${server.name}: ${now}${server.cause ? ", " + server.cause : ""}`;
  }

  function follow(address) {
    let source = null;
    const open = () => {
      if (source) return;
      source = new EventSource(address);
      source.onopen = () => { lost(false); soon(); };
      source.onerror = () => {
        lost(true);
        if (source.readyState === EventSource.CLOSED) { close(); setTimeout(show, 2000); }
      };
      source.addEventListener("server", (event) => { say(event); soon(); });
      for (const kind of ["catalogue", "decision", "call", "reload"]) source.addEventListener(kind, soon);
    };
    const close = () => { if (source) source.close(); source = null; };
    // browsers allow six connections to one host: a tab that nobody sees gives its own back
    const show = () => (document.hidden ? close() : open());
    document.addEventListener("visibilitychange", show);
    window.addEventListener("pagehide", close);
    window.addEventListener("pageshow", show);
    setInterval(() => { if (!document.hidden) soon(); }, ANYWAY_MS);
    show();
  }

  for (const form of document.querySelectorAll("form[data-filter]")) {
    let typed = 0;
    const filter = () => {
      const address = new URL(form.action);
      address.search = new URLSearchParams(new FormData(form)).toString();
      history.replaceState(null, "", address);
      read(address.href);
    };
    form.addEventListener("input", () => { clearTimeout(typed); typed = setTimeout(filter, QUIET_MS); });
  }

  document.addEventListener("submit", (event) => {
    // a second click would act twice; the button still sends its value, so it is disabled afterwards
    const buttons = event.target.querySelectorAll("button");
    if (event.target.method === "post") setTimeout(() => buttons.forEach((one) => { one.disabled = true; }));
  });
  window.addEventListener("pageshow", () => {
    document.querySelectorAll("button[disabled]").forEach((one) => { one.disabled = false; });
  });

  const result = document.getElementById("result-title");
  if (result) result.focus();

  const events = document.body.dataset.events;
  if (events && "EventSource" in window) follow(events);
})();
