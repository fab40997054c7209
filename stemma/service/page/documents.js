// The documents view: every source with its status; what failed says why.

import { getJson } from "./api.js";
import { byId, count, element } from "./dom.js";

const STATUSES = ["ready", "processing", "pending", "failed", "cancelled"];
const LIMIT = 100;
let cursor = null;
let status = "";
let latest = 0;

/** Shows the list for its address: `status` filters. */
export async function showDocuments(parameters) {
  status = STATUSES.includes(parameters.get("status")) ? parameters.get("status") : "";
  cursor = null;
  document.title = "Documents · Stemma";
  await Promise.all([showFilters(), load(true)]);
}

async function showFilters() {
  try {
    const { documents } = await getJson("/api/status");
    const filters = STATUSES.filter((name) => documents.by_status[name]).map((name) => [name, name, documents.by_status[name]]);
    byId("status-filter").replaceChildren(...[["", "all", documents.total], ...filters].map(([value, label, number]) =>
      element("a", { className: `filter ${value}`, href: value ? `#/documents?status=${value}` : "#/documents", "aria-current": value === status ? "true" : null },
        label, " ", element("span", { className: "count" }, count(number)))));
  } catch {
    byId("status-filter").replaceChildren(); // the list below says what is wrong
  }
}

async function load(fresh) {
  const mine = (latest += 1);
  const parameters = new URLSearchParams({ limit: LIMIT });
  if (status) parameters.set("status", status);
  if (cursor) parameters.set("cursor", cursor);
  try {
    const page = await getJson(`/api/documents?${parameters}`);
    if (mine !== latest) return;
    const rows = page.documents.map(row);
    if (fresh) byId("document-rows").replaceChildren(...rows);
    else byId("document-rows").append(...rows);
    cursor = page.next_cursor;
    byId("more-documents").hidden = !cursor;
    say(byId("document-rows").rows.length ? "" : status ? `No document is ${status}.` : "The library is empty: put files into it.");
  } catch (problem) {
    if (mine === latest) say(problem.message, true);
  }
}

function row(source) {
  const name = source.source_path.split("/").at(-1);
  const title = source.doc_id
    ? element("a", { href: `#/document/${encodeURIComponent(source.source_id)}` }, source.title || name)
    : element("span", {}, source.title || name);
  const state = source.status === "processing" && source.stage ? `${source.status}: ${source.stage}` : source.status;
  const reason = source.error_code ?? source.warning_code;
  return element("tr", {},
    element("td", {}, element("span", { className: "title" }, title), element("span", { className: "path" }, source.source_path),
      reason
        ? element("span", { className: source.error_code ? "reason error" : "reason" }, element("code", {}, reason), " ", source.error_message ?? "",
            source.failure ? ` (${source.failure})` : "")
        : null),
    element("td", {}, source.workspace),
    element("td", {}, element("span", { className: `status ${source.status}` }, state)),
    element("td", { className: "number" }, source.n_chunks === null ? "–" : count(source.n_chunks)));
}

function say(text, failed = false) {
  byId("documents-state").textContent = text;
  byId("documents-state").classList.toggle("error", failed);
}

byId("more-documents").addEventListener("click", () => load(false));
