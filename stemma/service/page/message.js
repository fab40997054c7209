// A question or an answer: its text, with a number that opens the reader at the quote in place of each marker.

import { element, pages } from "./dom.js";

const MARKER = /\[citation:[^\]]+\]/g;

/** The list item of a message {role, content, citations, degraded}; while it is written it has no citations yet. */
export function messageItem({ role, content, citations = [], degraded = [] }) {
  return element("li", { className: `message ${role}` },
    element("span", { className: "visually-hidden" }, role === "user" ? "You: " : "Stemma: "),
    element("p", {}, withNumbers(content, citations)),
    degraded.length ? element("p", { className: "place" }, degraded.join(" ")) : null,
    citations.length ? element("ol", {}, citations.map((citation) => element("li", {}, citedPlace(citation)))) : null);
}

/** Each marker stands for the next quote of its passage; one that no quote stands behind is left out. */
function withNumbers(content, citations) {
  const waiting = [...citations];
  const pieces = [];
  let done = 0;
  for (const { 0: marker, index } of content.matchAll(MARKER)) {
    pieces.push(content.slice(done, index).replace(/ $/, ""));
    done = index + marker.length;
    const at = waiting.findIndex((citation) => citation.marker === marker);
    const citation = at >= 0 ? waiting.splice(at, 1)[0] : citations.find((other) => other.marker === marker);
    if (citation) pieces.push(citationLink(citation, String(citation.position), "citation"));
  }
  return [...pieces, content.slice(done)];
}

function citedPlace(citation) {
  const place = [citation.title, pages(citation.page_start, citation.page_end)].filter(Boolean).join(", ");
  return citation.source_deleted_at ? `${place} (deleted)` : citationLink(citation, place, "");
}

function citationLink({ doc_id: document, source_deleted_at: deleted, chunk_id: chunk, quote, ...citation }, text, className) {
  if (deleted) return element("span", { className, title: quote }, text);
  const parameters = new URLSearchParams({ chunk, from: citation.quote_char_start, to: citation.quote_char_end });
  if (citation.page_start !== null) parameters.set("page", citation.page_start);
  const name = className ? `Quote ${text}: ${citation.title}` : null;
  return element("a", { className, title: quote, href: `#/document/${encodeURIComponent(document)}?${parameters}`, "aria-label": name }, text);
}
