// The documents view: every source with its status; what failed says why.

import { bringUpToDate, deleteDocuments, getJson, retryDocument } from "./api.js";
import { byId, count, element } from "./dom.js";
import { choose } from "./options.js";

const STATUSES = ["ready", "processing", "pending", "failed", "cancelled"];
const LIMIT = 100;
let cursor = null;
let status = "";
let folder = "";
let latest = 0;
const selected = new Map(); // source_id -> source_path, of the rows that are ticked
const NAMED = 8; // documents that the question names

/** Shows the list for its address: `status` and `folder` filter. */
export async function showDocuments(parameters) {
  status = STATUSES.includes(parameters.get("status")) ? parameters.get("status") : "";
  folder = parameters.get("folder") ?? "";
  choose(byId("documents-folder"), folder);
  cursor = null;
  selected.clear();
  showSelection();
  document.title = "Documents · Stemma";
  await Promise.all([showFilters(), showStale(), load(true)]);
}

/** What is not what its file and the settings give, and why; the work that a person may ask for, not what is gone or being deleted. */
async function showStale() {
  let kinds = [];
  try {
    kinds = (await getJson("/api/stale?limit=0")).kinds.filter(({ waits_for: waits }) => !["run", "file", "deletion", "wish"].includes(waits));
  } catch {
    // the list below says what is wrong
  }
  const reasons = new Map();
  for (const { reason, documents } of kinds) reasons.set(reason, (reasons.get(reason) ?? 0) + documents);
  const because = [...reasons].map(([reason, number]) => `${count(number)} ${reason}`).join(", ");
  byId("stale-count").textContent = `${count(kinds.reduce((sum, { documents }) => sum + documents, 0), "document")} out of date: ${because}.`;
  byId("stale").hidden = kinds.length === 0;
}

async function askForWork() {
  try {
    const { documents } = await bringUpToDate();
    say(`${count(documents, "document")} asked for. What is live stays searchable until then.`);
    byId("stale").hidden = true;
  } catch (problem) {
    say(problem.message, true);
  }
}

function documentsAddress(wantedStatus, wantedFolder) {
  const parameters = new URLSearchParams();
  if (wantedStatus) parameters.set("status", wantedStatus);
  if (wantedFolder) parameters.set("folder", wantedFolder);
  return parameters.size ? `#/documents?${parameters}` : "#/documents";
}

async function showFilters() {
  try {
    const { documents } = await getJson("/api/status");
    const filters = STATUSES.filter((name) => documents.by_status[name]).map((name) => [name, name, documents.by_status[name]]);
    byId("status-filter").replaceChildren(...[["", "all", documents.total], ...filters].map(([value, label, number]) =>
      element("a", { className: `filter ${value}`, href: documentsAddress(value, folder), "aria-current": value === status ? "true" : null },
        label, " ", element("span", { className: "count" }, count(number)))));
  } catch {
    byId("status-filter").replaceChildren(); // the list below says what is wrong
  }
}

async function load(fresh) {
  const mine = (latest += 1);
  const parameters = new URLSearchParams({ limit: LIMIT });
  if (status) parameters.set("status", status);
  if (folder) parameters.set("folder", folder);
  if (cursor) parameters.set("cursor", cursor);
  try {
    const page = await getJson(`/api/documents?${parameters}`);
    if (mine !== latest) return;
    const rows = page.documents.map(row);
    if (fresh) byId("document-rows").replaceChildren(...rows);
    else byId("document-rows").append(...rows);
    cursor = page.next_cursor;
    byId("more-documents").hidden = !cursor;
    say(byId("document-rows").rows.length ? "" : status || folder ? `No document${folder ? ` of ${folder}` : ""} is ${status || "here"}.` : "The library is empty: put files into it.");
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
  const shown = source.deletion_intent ? "deleting" : source.excluded ? "deleted, file kept" : state;
  const tick = element("input", { type: "checkbox", value: source.source_id, "aria-label": `Select ${source.source_path}`, disabled: source.excluded && !source.deletion_intent });
  tick.addEventListener("change", () => select(tick, source.source_path));
  return element("tr", {},
    element("td", {}, tick),
    element("td", {}, element("span", { className: "title" }, title), element("span", { className: "path" }, source.source_path),
      reason
        ? element("span", { className: source.error_code ? "reason error" : "reason" }, element("code", {}, reason), " ", source.error_message ?? "",
            source.failure ? ` (${source.failure})` : "")
        : null,
      ["failed", "cancelled"].includes(source.status) && !source.deletion_intent
        ? element("button", { type: "button", className: "retry", "aria-label": `Retry ${source.source_path}`, onclick: () => retry(source) }, "Retry")
        : null),
    element("td", {}, source.workspace),
    element("td", {}, element("span", { className: `status ${source.status}` }, shown)),
    element("td", { className: "number" }, source.n_chunks === null ? "–" : count(source.n_chunks)));
}

async function retry(source) {
  let told;
  try {
    await retryDocument(source.source_id);
    told = [`${source.source_path} is tried again.`];
  } catch (problem) {
    told = [problem.message, true];
  }
  await reload();
  say(...told);
}

/** Reads list and counts anew, from its beginning; what was ticked is no longer. */
export async function reload() {
  selected.clear();
  cursor = null;
  await Promise.all([showFilters(), load(true)]);
  showSelection();
}

function select(tick, path) {
  if (tick.checked) selected.set(tick.value, path);
  else selected.delete(tick.value);
  showSelection();
}

const ticks = () => [...byId("document-rows").querySelectorAll("input[type=checkbox]:not(:disabled)")];

function showSelection() {
  byId("selection").hidden = selected.size === 0;
  byId("selection-count").textContent = selected.size ? `${count(selected.size, "document")} selected` : "";
  const all = ticks();
  byId("select-all").checked = all.length > 0 && all.every((tick) => tick.checked);
}

function tickAll(checked) {
  for (const tick of ticks()) {
    if (tick.checked === checked) continue;
    tick.checked = checked;
    tick.dispatchEvent(new Event("change"));
  }
}

function askToDelete() {
  const paths = [...selected.values()];
  byId("delete-question").textContent = `Delete ${count(paths.length, "document")}? No search finds ${paths.length === 1 ? "it" : "them"} any more.`;
  const more = paths.length > NAMED ? [element("li", {}, `and ${count(paths.length - NAMED)} more`)] : [];
  byId("delete-names").replaceChildren(...paths.slice(0, NAMED).map((path) => element("li", {}, path)), ...more);
  byId("remove-file").checked = false;
  byId("delete-dialog").returnValue = "";
  byId("delete-dialog").showModal();
}

async function deleteSelected() {
  if (byId("delete-dialog").returnValue !== "delete" || selected.size === 0) return;
  say("Deleting …");
  let told;
  try {
    const report = await deleteDocuments({ documents: [...selected.keys()], expected: selected.size, remove_file: byId("remove-file").checked });
    told = [outcome(report), report.failed.length > 0];
  } catch (problem) {
    told = [problem.message, true];
  }
  await reload();
  say(...told);
}

function outcome({ deleted, excluded, changed, failed, pending, not_found: notFound }) {
  return [
    deleted.length ? `${count(deleted.length, "document")} deleted.` : "",
    excluded.length ? `${count(excluded.length, "document")} deleted; ${excluded.length === 1 ? "its file stays" : "their files stay"}.` : "",
    changed.length ? `${count(changed.length, "file")} had changed and stay in the library.` : "",
    pending.length ? `${count(pending.length, "document")} still being deleted.` : "",
    notFound.length ? `${count(notFound.length, "document")} gone already.` : "",
    ...failed.map((source) => `${source.source_path}: ${source.error_message}`),
  ].filter(Boolean).join(" ");
}

function say(text, failed = false) {
  byId("documents-state").textContent = text;
  byId("documents-state").classList.toggle("error", failed);
}

byId("more-documents").addEventListener("click", () => load(false));
byId("bring-up-to-date").addEventListener("click", askForWork);
byId("select-all").addEventListener("change", () => tickAll(byId("select-all").checked));
byId("clear-selection").addEventListener("click", () => tickAll(false));
byId("delete-selected").addEventListener("click", askToDelete);
byId("delete-dialog").addEventListener("close", deleteSelected);
byId("documents-folder").addEventListener("change", (event) => (location.hash = documentsAddress(status, event.target.value)));
