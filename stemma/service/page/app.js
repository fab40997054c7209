// The page: which view the address names, and what is always there (keys, readiness, counts).

import { getJson } from "./api.js";
import { showBackups } from "./backups.js";
import { showChat } from "./chat.js";
import { byId, count } from "./dom.js";
import { setFolders } from "./options.js";
import { goBack, showDocument } from "./reader.js";
import { showDocuments } from "./documents.js";
import { setWorkspaces, showSearch } from "./search.js";
import { showSettings } from "./settings.js";
import "./uploads.js";

const VIEWS = { search: showSearch, documents: showDocuments, document: showDocument, chat: showChat, backups: showBackups, settings: showSettings };
const POLL_MS = 5_000;

/** "#/document/abc?from=1" -> {view, argument, parameters}. */
function address() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [view, argument = ""] = path.split("/");
  return { view: view in VIEWS ? view : "search", argument: decodeURIComponent(argument), parameters: new URLSearchParams(query) };
}

function route() {
  const { view, argument, parameters } = address();
  for (const name of Object.keys(VIEWS)) byId(`view-${name}`).hidden = name !== view;
  for (const link of document.querySelectorAll("[data-view]")) {
    if (link.dataset.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  VIEWS[view](parameters, argument);
}

function notice(text) {
  byId("notice").hidden = !text;
  byId("notice").textContent = text ?? "";
}

async function poll() {
  try {
    const health = await getJson("/api/health");
    const unready = health.ready ? [] : [`Not ready: ${health.reason}`];
    notice(unready.join(" "));
    const status = await getJson("/api/status");
    notice([...unready, ...status.notices].join(" "));
    const failed = status.documents.by_status.failed ?? 0;
    byId("failed-count").hidden = failed === 0;
    byId("failed-count").textContent = count(failed, "failed", "failed");
    byId("dagster-link").hidden = !status.links.dagster;
    byId("dagster-link").href = status.links.dagster ?? "";
    setWorkspaces(status.workspaces);
    setFolders((await getJson("/api/folders")).folders);
  } catch (problem) {
    if (problem.code === "service_unreachable") notice(problem.message);
  }
}

document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    if (address().view !== "search") location.hash = "#/search";
    byId("query").focus();
    byId("query").select();
  }
  if (event.key === "Escape" && !document.querySelector("dialog[open]") && address().view === "document") goBack();
});

window.addEventListener("hashchange", route);
route();
poll();
setInterval(() => document.visibilityState === "visible" && poll(), POLL_MS);
