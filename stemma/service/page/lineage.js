// The lineage panel: from a passage, or a document, back to the bytes and the settings that made it.

import { getJson } from "./api.js";
import { byId, count, element, lines, pages } from "./dom.js";

const ON_DISK = {
  same: "The file on disk still has these bytes.",
  changed: "The file on disk has other bytes now.",
  gone: "The file is no longer there.",
  unreadable: "The file on disk cannot be read now.",
  contained: "These bytes were taken out of the file that holds them.",
};
const SHORT = 12; // characters of a hash that are shown; the whole is in its title

let latest = 0;

/** A button that opens the panel for a chunk, or for a document where there is no chunk; the trace of a hit is shown above it. */
export function lineageButton({ chunk, document, trace }) {
  const name = trace ? "Why this result, and where it comes from" : chunk ? "Where this passage comes from" : "Where this document comes from";
  return element("button", { type: "button", className: "lineage", title: name, "aria-haspopup": "dialog", onclick: () => showLineage({ chunk, document, trace }) }, trace ? "Why this result" : "Lineage");
}

async function showLineage({ chunk, document, trace }) {
  const panel = byId("lineage");
  const mine = (latest += 1);
  fill(panel, element("p", { role: "status" }, "Reading the file …"));
  if (!panel.open) panel.showModal();
  try {
    const lineage = await getJson(chunk ? `/api/chunks/${encodeURIComponent(chunk)}/lineage` : `/api/documents/${encodeURIComponent(document)}/lineage`);
    if (mine === latest) fill(panel, ...(trace ? [why(trace)] : []), ...sections(lineage));
  } catch (problem) {
    if (mine === latest) fill(panel, element("p", { className: "error", role: "alert" }, problem.message));
  }
}

function fill(panel, ...content) {
  const close = element("button", { type: "button", onclick: () => panel.close() }, "Close");
  panel.replaceChildren(element("header", {}, element("h2", {}, "Lineage"), close), ...content);
}

/** How the passage came to its place: what each arm that found it thought of it, and what fusion and reranking made of that. */
function why(trace) {
  const arm = (name, rank, measure) => [rank === null ? `${name} did not find it` : `${name} found it at rank ${rank} with ${measure}`];
  return section("Why this result", null, [
    arm("Search by meaning", trace.semantic_rank, `cosine ${trace.semantic_score?.toFixed(3)}`),
    arm("Search by keywords", trace.bm25_rank, `relevance ${trace.bm25_score?.toFixed(2)}`),
    [`fused to rank ${trace.fused_rank} with ${trace.fused_score.toFixed(3)}`],
    [trace.rerank_delta !== null && `moved by ${trace.rerank_delta} places when reranked`],
  ]);
}

function sections({ chunk, document, file, recipe, links }) {
  return [
    chunk && section("Passage", chunk.chunk_id, [
      [chunk.section_path.join(" › ")],
      [[pages(chunk.page_start, chunk.page_end), lines(chunk.start_line, chunk.end_line), `characters ${chunk.char_start}–${chunk.char_end}`].filter(Boolean).join(" · ")],
      [chunk.is_exact ? "The text between these offsets is the passage." : "The text between these offsets is NOT the passage."],
      [hash("sha256 of the passage", chunk.text_hash)],
      [chunk.context && `Context for search: ${chunk.context}`],
    ]),
    section("Document", document.title, [
      [`version ${document.doc_id} · publication ${document.publication_id}`],
      [`${count(document.n_chars, "character")} in ${count(document.n_chunks, "passage")}`],
      [document.published_at && `live since ${new Date(document.published_at).toLocaleString("en")}`],
      [document.warning_code && element("code", {}, document.warning_code)],
    ]),
    file && section("File", file.source_path, [
      [hash("sha256", file.content_hash)],
      [file.container_path && `In ${file.container_path}`],
      [element("span", { className: `on-disk ${file.on_disk}` }, ON_DISK[file.on_disk])],
    ]),
    section("Recipe", null, recipe.map((stage) => [
      element("strong", {}, stage.stage), ` ${stage.made_by} `, stage.fingerprint ? hash("fingerprint", stage.fingerprint) : null,
      element("span", { className: "place" }, Object.entries(stage.settings).map(([name, value]) => `${name}=${value}`).join(", ")),
    ])),
    section("Made by", null, [[outside(links.run, "The run in Dagster"), " · ", outside(links.partition, "This document's history in Dagster")], [hash("run", document.run_id)]]),
  ].filter(Boolean);
}

function section(name, title, rows) {
  const shown = rows.filter((row) => row.some(Boolean));
  return element("section", {}, element("h3", {}, name), title ? element("p", { className: "path" }, title) : null,
    element("ul", {}, shown.map((row) => element("li", {}, ...row))));
}

const hash = (name, value) => element("span", { className: "hash", title: value }, `${name} `, element("code", {}, `${value.slice(0, SHORT)}…`));
const outside = (href, text) => element("a", { href, target: "_blank", rel: "noopener" }, text);
