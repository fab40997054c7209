// The reader: a document's whole text with one exact span marked.

import { getJson, getText } from "./api.js";
import { utf16Index } from "./codepoints.js";
import { byId, count, element, lines } from "./dom.js";
import { lineageButton } from "./lineage.js";

const WINDOW = 200_000; // characters laid out at once on each side of the span: a browser lays out millions slowly

let latest = 0;

/** Shows the document `id` (a source_id or doc_id) and marks the code points from `from` to `to`. */
export async function showDocument(parameters, id) {
  const view = byId("view-document");
  const mine = (latest += 1);
  view.replaceChildren(element("p", { role: "status" }, "Opening …"));
  try {
    const { document: opened, present } = await open(id);
    const text = await getText(`/api/documents/${encodeURIComponent(opened.doc_id ?? opened.source_id)}/text`);
    if (mine !== latest) return;
    const span = present && parameters.has("from") ? [Number(parameters.get("from")), Number(parameters.get("to"))] : null;
    view.replaceChildren(heading(opened, text, span, parameters), ...(present ? [] : [changed()]), body(text, span));
    document.title = `${opened.title ?? opened.source_path} · Stemma`;
    showSpan();
  } catch (problem) {
    if (mine === latest) view.replaceChildren(back(), element("p", { className: "error", role: "alert" }, problem.message));
  }
}

/** The document, and whether it is the version that the address names: a replaced version leads to the present one. */
async function open(id) {
  try {
    return { document: await getJson(`/api/documents/${encodeURIComponent(id)}`), present: true };
  } catch (problem) {
    if (problem.status !== 410 || !problem.body.present_doc_id) throw problem;
    return { document: await getJson(`/api/documents/${encodeURIComponent(problem.body.present_doc_id)}`), present: false };
  }
}

/** Back to where the reader was opened from; a reader opened by its address leads to the search. */
export function goBack() {
  if (history.length > 1) history.back();
  else location.hash = "#/search";
}

function back() {
  return element("button", { type: "button", className: "back", onclick: goBack }, "← Back");
}

function showSpan() {
  const span = byId("span");
  if (!span) return scrollTo(0, 0);
  span.scrollIntoView({ block: span.getBoundingClientRect().height < innerHeight / 2 ? "center" : "start" });
  span.focus({ preventScroll: true });
}

function changed() {
  return element("p", { className: "notice" }, "This document has changed since the passage was found. You see its present text.");
}

function heading(opened, text, span, parameters) {
  const page = parameters.get("page");
  const whole = [
    opened.workspace,
    opened.file_type?.toUpperCase(),
    opened.n_pages ? count(opened.n_pages, "page") : null,
    opened.n_chunks === null ? null : count(opened.n_chunks, "passage"),
  ];
  const here = span ? [page ? `page ${page}` : null, lines(...lineSpan(text, span))].filter(Boolean).join(", ") : null;
  return element("header", {},
    back(),
    element("div", {},
      element("h1", {}, opened.title),
      element("p", { className: "path" }, opened.source_path),
      opened.container_id ? element("p", { className: "container" }, "In ", link(opened.container_id, opened.container_path)) : null,
      opened.contained.length ? contained(opened.contained) : null,
      element("p", { className: "place" }, whole.filter(Boolean).join(" · "))),
    lineageButton({ chunk: span && parameters.get("chunk"), document: opened.source_id }),
    here ? element("button", { type: "button", className: "here", onclick: showSpan }, here) : null,
    opened.error_message ? element("p", { className: "error" }, element("code", {}, opened.error_code), ` ${opened.error_message}`,
      opened.failure ? ` (${opened.failure})` : "") : null);
}

function link(sourceId, text) {
  return element("a", { href: `#/document/${encodeURIComponent(sourceId)}` }, text);
}

/** What lies in a mail or archive: a link to each, or its name and why there is nothing to open yet. */
function contained(sources) {
  return element("ul", { className: "contained", "aria-label": "Contained documents" }, sources.map((source) => {
    const name = source.source_path.split("//").at(-1);
    const size = source.size === null ? null : count(source.size, "byte");
    const state = source.doc_id ? null : source.error_code ?? source.status;
    return element("li", {}, source.doc_id ? link(source.source_id, name) : name, " ",
      element("span", { className: "place" }, [source.media_type, size, state].filter(Boolean).join(" · ")));
  }));
}

function lineSpan(text, [from, to]) {
  const start = utf16Index(text, from);
  const end = utf16Index(text, to);
  const first = text.slice(0, start).split("\n").length;
  return [first, first + text.slice(start, Math.max(start, end - 1)).split("\n").length - 1];
}

function body(text, span) {
  const [start, end] = span ? span.map((offset) => utf16Index(text, offset)) : [0, 0];
  const frame = element("pre", { className: "text", tabIndex: 0, "aria-label": "Text of the document" });
  if (!text) return element("p", { className: "empty" }, "This document has no text.");
  let [first, last] = [boundary(text, start - WINDOW), boundary(text, end + WINDOW)];
  const before = element("span", {}, text.slice(first, start));
  const after = element("span", {}, text.slice(end, last));
  const earlier = element("button", { type: "button", className: "more", hidden: first === 0, onclick: () => {
    const from = boundary(text, first - WINDOW);
    before.prepend(text.slice(from, first));
    first = from;
    earlier.hidden = first === 0;
  } }, "Show earlier text");
  const later = element("button", { type: "button", className: "more", hidden: last === text.length, onclick: () => {
    const to = boundary(text, last + WINDOW);
    after.append(text.slice(last, to));
    last = to;
    later.hidden = last === text.length;
  } }, "Show later text");
  frame.append(before, ...(span ? [element("mark", { id: "span", tabIndex: -1 }, text.slice(start, end))] : []), after);
  return element("div", {}, earlier, frame, later);
}

/** The index moved into the text and off the middle of a surrogate pair. */
function boundary(text, index) {
  const inside = Math.min(Math.max(index, 0), text.length);
  return /[\udc00-\udfff]/.test(text[inside] ?? "") ? inside - 1 : inside;
}
