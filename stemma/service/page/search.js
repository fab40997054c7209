// The search view: a form, and passages with the reasons for their rank.

import { search } from "./api.js";
import { byId, count, element, lines, pages } from "./dom.js";
import { lineageButton } from "./lineage.js";
import { choose, setOptions } from "./options.js";
import { beginning, from, markedPieces } from "./words.js";

const K = 10;
const K_MORE = 50;
const FILTERS = ["workspace", "folder", "type", "section", "from", "before", "whole"]; // parameters of the address, and ids of their controls
const PAUSE_MS = 250; // of typing, until what stands there is searched for
let shown = null; // address of the answer on the page, so that coming back from a document asks nothing again
let typed = null; // address that was asked for while typing: Enter does not ask it a second time
let typing = null;
let pending = null;

/** `sem #1 · bm25 #3 · fused 0.94 · rerank +2`; an arm that did not find the passage has no badge. */
export function badges(trace) {
  if (!trace) return [];
  const found = [];
  if (trace.semantic_rank !== null) found.push([`sem #${trace.semantic_rank}`, `cosine ${trace.semantic_score.toFixed(3)}`, "semantic"]);
  if (trace.bm25_rank !== null) found.push([`bm25 #${trace.bm25_rank}`, `relevance ${trace.bm25_score.toFixed(2)}`, "bm25"]);
  found.push([`fused ${trace.fused_score.toFixed(2)}`, `rank ${trace.fused_rank} after fusion`, "fused"]);
  if (trace.rerank_delta !== null) found.push([`rerank ${trace.rerank_delta >= 0 ? "+" : ""}${trace.rerank_delta}`, "places won", "rerank"]);
  return found.map(([text, title, kind]) => element("span", { className: `badge ${kind}`, title }, text));
}

function separated(parts, separator, className) {
  return parts.flatMap((part, at) => (at ? [element("span", { className, "aria-hidden": "true" }, separator), part] : [part]));
}

function documentLink(hit) {
  const parameters = new URLSearchParams({ chunk: hit.chunk_id, from: hit.char_start, to: hit.char_end });
  if (hit.page_start !== null) parameters.set("page", hit.page_start === hit.page_end ? hit.page_start : `${hit.page_start}–${hit.page_end}`);
  return `#/document/${encodeURIComponent(hit.doc_id)}?${parameters}`;
}

function result(hit, query) {
  const pieces = markedPieces(hit.content, query);
  const start = beginning(pieces);
  const passage = from(pieces, start).map(([text, marked]) => (marked ? element("mark", {}, text) : text));
  if (start) passage.unshift("… ");
  const trail = hit.section_path[0] === hit.title ? hit.section_path.slice(1) : hit.section_path;
  const recognised = hit.extraction === "text" ? null : "by OCR";
  const place = [hit.workspace, pages(hit.page_start, hit.page_end), lines(hit.start_line, hit.end_line), recognised].filter(Boolean);
  return element("li", {},
    element("a", { className: "result", href: documentLink(hit) },
      element("span", { className: "heading" },
        element("span", { className: "title" }, hit.title),
        element("span", { className: "badges" }, separated(badges(hit.trace), "·", "dot"))),
      element("span", { className: "path" }, hit.source_path),
      trail.length ? element("span", { className: "trail" }, separated(trail.map((heading) => element("span", {}, heading)), "›", "dot")) : null,
      element("span", { className: hit.chunk_type === "prose" ? "passage" : "passage fixed" }, passage),
      element("span", { className: "place" }, place.join(" · "))),
    hit.also_at.length ? element("p", { className: "place" }, `Also in ${hit.also_at.map((other) => other.source_path).join(" · ")}`) : null,
    lineageButton({ chunk: hit.chunk_id, trace: hit.trace }));
}

function say(text, failed = false) {
  byId("search-state").textContent = text;
  byId("search-state").classList.toggle("error", failed);
}

const words = (text) => text.split(/[\s,]+/).filter(Boolean);
const some = (values) => (values.length ? values : null); // an empty list would match nothing
const startOfDay = (day) => (day ? new Date(`${day}T00:00`).toISOString() : null); // midnight where the reader is

/** The body of a search for the parameters of an address. */
function body(parameters) {
  const given = (name) => parameters.get(name)?.trim() ?? "";
  return {
    query: given("q"), method: parameters.get("method"), k: Number(parameters.get("k")) || K,
    scope: {
      workspaces: some([given("workspace")].filter(Boolean)), folders: some([given("folder")].filter(Boolean)),
      file_types: some(words(given("type"))), sections: some([given("section")].filter(Boolean)),
      modified_from: startOfDay(given("from")), modified_before: startOfDay(given("before")),
    },
    shape: { merge: given("whole") === "1", fold: given("whole") === "1" },
  };
}

async function ask(parameters) {
  pending?.abort();
  pending = new AbortController();
  const { signal } = pending;
  say("Searching …");
  const began = performance.now();
  try {
    const asked = body(parameters);
    const answer = await search(asked, signal);
    const seconds = ((performance.now() - began) / 1000).toFixed(2);
    byId("results").replaceChildren(...answer.hits.map((hit) => result(hit, asked.query)));
    if (answer.hits.length === asked.k && asked.k < K_MORE) byId("results").append(moreLink(parameters));
    const others = answer.searched.length ? [`Also searched: ${answer.searched.join(" · ")}.`] : [];
    say([answer.hits.length ? `${count(answer.hits.length, "passage")} in ${seconds} s` : "Nothing found.", ...others, ...answer.degraded].join(" "));
  } catch (problem) {
    if (problem.name === "AbortError") return;
    shown = null;
    byId("results").replaceChildren();
    say(problem.message, true);
  }
}

const searchAddress = (parameters) => `#/search?${parameters}`;

function moreLink(parameters) {
  const more = new URLSearchParams(parameters);
  more.set("k", K_MORE);
  return element("li", { className: "more" }, element("a", { href: searchAddress(more) }, "Show more passages"));
}

/** What the form asks, as parameters of an address: nothing for what is not restricted. */
function formParameters() {
  const parameters = new URLSearchParams({ q: byId("query").value.trim(), method: byId("method").value });
  for (const name of FILTERS) {
    const control = byId(name);
    const value = control.type === "checkbox" ? (control.checked ? "1" : "") : control.value.trim();
    if (value) parameters.set(name, value);
  }
  return parameters;
}

/** Shows the view for its address; an address without a query leaves the last answer where it is. */
export function showSearch(parameters) {
  const query = parameters.get("q") ?? "";
  document.title = query ? `${query} · Stemma` : "Stemma";
  if (!query) return byId("query").focus();
  if (byId("query").value.trim() !== query) byId("query").value = query;
  byId("method").value = parameters.get("method") ?? "hybrid";
  for (const name of FILTERS) {
    const control = byId(name);
    const value = parameters.get(name) ?? "";
    if (control.type === "checkbox") control.checked = value === "1";
    else if (control.type === "select-one") choose(control, value);
    else if (control.value.trim() !== value) control.value = value;
  }
  if (FILTERS.some((name) => name !== "workspace" && parameters.has(name))) byId("filters").open = true;
  const asked = formParameters();
  if (parameters.has("k")) asked.set("k", parameters.get("k"));
  const wanted = searchAddress(asked);
  if (wanted === shown) return;
  shown = wanted;
  ask(asked);
}

/** Fills the filter with [{key, name, n_documents}], keeping what is chosen. */
export function setWorkspaces(workspaces) {
  const options = workspaces.map(({ key, name, n_documents }) => element("option", { value: key }, `${name} (${count(n_documents)})`));
  setOptions(byId("workspace"), "All", options);
}

function submit() {
  clearTimeout(typing);
  const asked = formParameters();
  if (!asked.get("q")) return say("Type what you are looking for.");
  const wanted = searchAddress(asked);
  if (wanted !== typed) shown = null; // asking again is meant
  typed = null;
  if (location.hash === wanted) showSearch(asked);
  else location.hash = wanted;
}

/** Searches for what stands there, in place of what stood there before: one visit to the search is one step back. */
function searchWhileTyping() {
  const asked = formParameters();
  if (!asked.get("q") || byId("view-search").hidden) return;
  typed = searchAddress(asked);
  history.replaceState(null, "", typed);
  showSearch(asked);
}

byId("search-form").addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});
for (const id of ["query", "type"]) {
  byId(id).addEventListener("input", (event) => {
    clearTimeout(typing);
    if (!event.isComposing) typing = setTimeout(searchWhileTyping, PAUSE_MS);
  });
  byId(id).addEventListener("compositionend", () => (typing = setTimeout(searchWhileTyping, PAUSE_MS)));
}
for (const id of ["method", ...FILTERS]) byId(id).addEventListener("change", () => byId("query").value.trim() && submit());

byId("view-search").addEventListener("keydown", (event) => {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  if (document.activeElement.tagName === "SELECT") return;
  const links = [...document.querySelectorAll("#results a")];
  const at = links.indexOf(document.activeElement);
  const next = event.key === "ArrowDown" ? at + 1 : at - 1;
  if (at < 0 && event.key === "ArrowUp") return;
  event.preventDefault();
  (next < 0 ? byId("query") : (links[next] ?? links.at(-1)))?.focus();
});
